"""The drawn set of images with a long tail of classes."""
