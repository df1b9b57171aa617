"""LICA as scikit-learn has estimators: parameters, checks, and the values that inference returned.

``base`` fits, holds what was learnt and shows it; ``classifier`` and ``regressor`` have the parameters, the answers and
their scores. ``targets`` reads ``y``, one target for each row or a column for each task.
"""
