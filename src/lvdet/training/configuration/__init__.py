"""A run as a config."""
