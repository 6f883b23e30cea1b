"""Reports: what is known of detectors, as one page and as figures and tables for papers."""
