"""What a fitted or a loaded model says of sequences.

- `door`: a user's sequences come in; `archive`: a model as plain data, and back;
- `predictor`: what a loaded model answers, with numpy alone, by `prediction`, `new_tasks` and `plain_filters`;
- `forecasting`: what comes next, and new sequences; `kin`: with whom a new task shares; `compiled_filters`: the same
  sums, compiled;
- `distances`: how far apart models are (eq. 11 and 12 of the paper).
"""
