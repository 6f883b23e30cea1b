"""The paper's tables and figures, as runs of trained detectors."""
