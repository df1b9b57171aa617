"""What a fitted or a loaded model says of sequences.

- `predictor`: all answers, of an estimator and of a loaded model alike; `layout`: what is remembered of a table;
- `prediction`: likelihoods and hidden states, averaged over draws; `new_tasks`: how a task may be that was not met;
- `states`: what hidden states are, and which are alike; `segments`: runs of steps in one state;
- `forecasting`: what comes next, and new sequences; `plain_filters`: sums over hidden states with numpy alone, for a
  loaded model; `compiled_filters`: the same sums for an estimator;
- `kin`: with whom a new task shares; `distances`: how far apart models are (eq. 11 and 12 of the paper);
- `archive`: a model as plain data, and back.
"""
