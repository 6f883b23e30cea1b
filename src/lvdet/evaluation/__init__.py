"""From matches and budgets to numbers."""
