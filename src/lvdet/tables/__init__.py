"""Tables of columns: ground truth, detections, classes, masks."""
