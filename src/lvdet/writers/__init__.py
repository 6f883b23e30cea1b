"""Where an inference loop puts its detections."""
