"""Scores that mean the same for every class (the paper, section 6.3)."""
