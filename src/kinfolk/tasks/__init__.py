"""The only door for a user's data: tables, labels, tasks and weights are read and checked here, and nowhere else.

- ``training``: the entrance for training data; ``answering``: the one for rows to be answered, with numpy alone.
- ``table``: any table as plain columns; ``matrix``: as one matrix of numbers; ``lengths``: of sequences end to end.
- ``membership``: which task each row belongs to; ``values``: a column of values, missing ones and codes.
- ``schema``: what a model remembers of columns, and their codes; ``numbers``, ``choosing``: columns of numbers.
- ``statistics``: counts per task, which add up.
- ``frames``: results as tables of the user's kind; ``whole_fits``: a fit that fails leaves the estimator as it was.
- ``streaming/``: tables larger than memory; ``selection/``: splitters and scorers that keep tasks in mind.
"""
