"""Weights from other projects: file formats, layouts, and their conversion."""
