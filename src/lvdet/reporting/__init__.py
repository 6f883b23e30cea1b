"""Reports on detectors: one page, and figures and tables for papers."""
