"""Boosted trees on features and tasks' effects: the member of an average that sees interactions.

``forest`` is what was learnt and how it answers, with numpy alone; ``effects`` are rates of labels, or means of
numbers, by task or category; ``crossed`` are random intercepts of tasks and categories together; ``growing`` grows one
tree, ``boosting`` one after another with the intercepts between them; ``learning`` learns all of it from rows.
"""
