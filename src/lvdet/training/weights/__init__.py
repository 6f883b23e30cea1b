"""Weights of other projects: files, layouts, and how they become lvdet's."""
