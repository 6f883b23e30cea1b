"""Writers for detections from an inference loop."""
