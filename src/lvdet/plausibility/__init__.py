"""Is a results file what its owner thinks?"""
