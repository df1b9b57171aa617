"""The only door for a user's data: tables, labels, tasks and weights are read and checked here, and nowhere else.

- ``training``: the entrance for training data; ``answering``: the one for rows to be answered, with numpy alone.
- ``table``: any table and its tasks as plain columns; ``sequences``: the forms that sequences come in.
- ``columns``: what the columns of a training table are, learnt at fit; ``choosing``: which family numbers are of.
- ``schema``: what a model remembers of them, the codes of values and tasks, and tables as numbers.
- ``design``: any table as a matrix for linear models and trees.
- ``statistics``: counts per task, which add up.
- ``frames``: results as tables of the user's kind; ``whole_fits``: a fit that fails leaves the estimator as it was.
- ``streaming/``: tables larger than memory; ``selection/``: splitters and scorers that keep tasks in mind.
"""
