"""The files that a run writes, and its display on the terminal."""
