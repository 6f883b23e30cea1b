"""Files and Python objects to tables, and back."""
