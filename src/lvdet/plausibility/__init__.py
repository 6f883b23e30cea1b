"""Checks whether a results file is plausible as a whole."""
