"""LICA as scikit-learn has estimators: parameters, checks, and the values that inference returned."""
