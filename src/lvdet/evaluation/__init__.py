"""Evaluation: from matches and budgets to metrics."""
