"""The estimators: parameters, checks, and the values that inference returned."""
