"""The estimators: parameters (read by ``parameters``), checks, and the values that inference returned."""
