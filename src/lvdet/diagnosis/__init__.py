"""Where the errors are: their kinds, and the cost of each (after TIDE, for federated data sets)."""
