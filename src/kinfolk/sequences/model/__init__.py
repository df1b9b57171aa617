"""The nDP-iHMM as values and pure functions.

- `sequences`: the data, sequences of many tasks end to end;
- `ndp_ihmm`: the model itself, its priors and a chain's state; `draw`: a draw of the posterior; `fitted`: all of them;
- `transitions`: counts, Dirichlet rows and tables; `filtering`, `smoothing`, `lanes`: sums over hidden paths, compiled;
- ``emissions``: conjugate families of observations, one a file; `emissions.families` has the table of them.
"""
