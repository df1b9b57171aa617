"""Linear models of many tasks as scikit-learn has estimators: parameters, checks, and what inference returned."""
