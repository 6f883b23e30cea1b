"""The losses of box classifiers, one per file."""
