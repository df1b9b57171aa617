"""Boosted trees on features and tasks' effects: the member of an average that sees interactions.

``forest`` is what was learnt and how it answers, with numpy alone; ``effects`` are rates of labels, or means of
numbers, by task or category; ``boosting`` grows trees; ``estimator`` learns one from rows.
"""
