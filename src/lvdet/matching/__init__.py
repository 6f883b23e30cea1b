"""Matches detections with ground truth."""
