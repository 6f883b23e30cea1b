"""Columns: ground truth, detections, classes, masks."""
