"""Where the errors are: kinds of them, and what each costs (after TIDE, for federated sets)."""
