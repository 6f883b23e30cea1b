"""Converts files and Python objects to tables, and back."""
