"""The losses of a classifier of boxes, one per file."""
