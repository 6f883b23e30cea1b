"""Which of two detectors is better, and how certain that is."""
