"""Detections against ground truth."""
