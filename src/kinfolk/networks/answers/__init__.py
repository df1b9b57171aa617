"""What fitted or loaded networks say, with numpy alone.

- ``predictor``, ``rows``: the probability of rows, and the label of rows where each label has a network.
- ``archive``: a fitted model as plain arrays, and back.
- ``bif``, ``pgmpy_model``: networks for other programs.
"""
