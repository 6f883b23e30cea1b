"""Detections of a trained model: the best of each class over a whole set of images."""
