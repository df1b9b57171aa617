"""What to say of a fit that ended before it had converged."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning


def warn_of_convergence(what: str, n_iterations: int) -> None:
    """Warn that something was given up after some iterations."""
    warnings.warn(
        f"{what} did not converge within max_iter={n_iterations} iterations: allow more, or a larger tol",
        ConvergenceWarning,
        stacklevel=5,
    )
