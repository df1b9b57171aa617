"""Pure functions and compiled kernels that more than one part of kinfolk uses.

arrays       the kinds of arrays that functions take and give
compiled     the one decorator of all kernels; kernel_cache: what it keeps, and for how long
dirichlet    marginals of Dirichlet-multinomial counts laid side by side, with numbers beside them
conjugate    marginals and predictive densities of numbers: Gaussian, and Poisson counts
draws        draws from discrete distributions, for kernels
rising       rising factorials, for kernels
gamma_draws  draws of Gamma and Dirichlet distributions, with numpy alone
log_gamma    log Γ, with numpy alone
digamma      the first two derivatives of lgamma, for kernels
stacking     weights of predictions that are averaged
blas         optimisation of few parameters without the threads of BLAS
"""
