"""The losses of a classifier of boxes, one a file."""
