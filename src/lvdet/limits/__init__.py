"""Which detections are looked at."""
