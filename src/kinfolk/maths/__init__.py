"""Pure functions and compiled kernels that more than one part of kinfolk uses.

compiled     the one decorator of all kernels
dirichlet    marginals of Dirichlet-multinomial counts laid side by side, with numbers beside them
conjugate    marginals and predictive densities of numbers: Gaussian, and Poisson counts
draws        draws from discrete distributions, for kernels
digamma      the derivative of lgamma, for kernels
blas         optimisation of few parameters without the threads of BLAS
"""
