"""What the models are, as values and pure functions; nothing here infers anything.

``values`` has the data, the hyper-parameters, the blocks of tasks and what inference leaves behind; ``mixture`` the
predictive distribution that every model comes down to, with ``densities`` for columns of numbers;
``noisy_copies`` is the noise model of the prototypes, with ``tallies`` of the counts.
"""
