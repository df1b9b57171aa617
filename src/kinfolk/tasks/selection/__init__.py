"""Choosing between models when rows come in tasks: cross-validation and scores that keep tasks in mind.

- ``splitters``: `FewPerTask`, `OneTaskFew`, `LeaveTasksOut` and `TaskKFold`.
- ``splitting``: what they have in common, reading a table's tasks and labels.
- ``scorers``: `task_scorer`, any score of scikit-learn that hands the task of each row on.
"""
