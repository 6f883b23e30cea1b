"""The same evaluations over the shards of a results file, on a Ray cluster."""
