"""Prediction with a trained model: the best detections of each class over a whole set of images."""
