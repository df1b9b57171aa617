"""Small tasks of two kinds that are easy to tell apart, for the tests of the estimators."""

import numpy as np

QUICK = {"n_states": 4, "n_chains": 2, "n_burn_in": 12, "n_draws": 6, "random_state": 0}


def toy_sequences(n_sequences=2, length=24, seed=0):
    """Four tasks, of which the first two show runs of a and b and the others of c and d; X, lengths and task."""
    rng = np.random.default_rng(seed)
    symbols, tasks = [], []
    for task, pair in (("ann", "ab"), ("bob", "ab"), ("cid", "cd"), ("dot", "cd")):
        for _ in range(n_sequences):
            runs = np.repeat((np.arange(4) + rng.integers(2)) % 2, length // 4)
            symbols += [pair[state] for state in runs]
            tasks.append(task)
    return np.array(symbols), [length] * len(tasks), tasks


def toy_numbers(n_sequences=2, length=24, seed=0):
    """The same with numbers for symbols, in two columns."""
    symbols, lengths, tasks = toy_sequences(n_sequences, length, seed)
    rng = np.random.default_rng(seed)
    centre = np.array([[0.0, 10.0], [5.0, 20.0], [50.0, 0.0], [60.0, -9.0]])[np.searchsorted(list("abcd"), symbols)]
    return centre + rng.normal(size=centre.shape), lengths, tasks
