"""The sharing models of papers 000 and 001, one estimator a file."""
