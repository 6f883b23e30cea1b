"""Draws a set of images with a long tail of classes."""
