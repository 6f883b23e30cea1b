"""Simulated data with known properties: a long-tail data set and a detector on it."""
