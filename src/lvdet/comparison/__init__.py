"""Which of two detectors is better, and how sure that is."""
