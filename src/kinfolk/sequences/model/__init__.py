"""The nDP-iHMM as values and pure functions.

- `sequences`: the data, sequences of many tasks end to end;
- `ndp_ihmm`: the model itself, a chain's state, and a draw of the posterior; `fitted`: all draws and their traces;
- `transitions`: counts, Dirichlet rows and tables; `filtering`, `smoothing`, `lanes`: sums over hidden paths, compiled;
- ``emissions``: conjugate families of observations, one a file.
"""
