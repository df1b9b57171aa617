"""The nDP-iHMM and the beta-process HMM as values and pure functions.

- `sequences`: the data, sequences of many tasks end to end;
- `ndp_ihmm`: the model itself, its priors and a chain's state; `draw`: a draw of the posterior; `fitted`: all of them;
- `bp_hmm`: the model in which tasks share some states and not others, its prior and a chain's state;
- `dirichlet_draws`: rows of transitions, drawn; `filtering`, `lanes`: sums and draws over hidden paths, compiled;
- ``emissions``: conjugate families of observations, one a file; `emissions.families` has the table of them.
"""
