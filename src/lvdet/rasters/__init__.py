"""Masks as pixels, runs and polygons, in NumPy alone."""
