"""Pure functions and compiled kernels that more than one part of kinfolk uses."""
