"""Budgets: which detections are kept."""
