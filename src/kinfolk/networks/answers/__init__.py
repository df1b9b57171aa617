"""What fitted or loaded networks say, with numpy alone.

- ``predictor``: how likely rows are, variables given others, and the label of rows where each label has a network.
- ``by_task``: tables that came one for each task. ``archive``: a fitted model as plain arrays, and back.
- ``bif``, ``pgmpy_model``: networks for other programs.
"""
