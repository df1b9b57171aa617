"""All rows as one task's: what LICA is compared with where tasks may be all alike."""

from __future__ import annotations

import numpy as np

from kinfolk.checkpoints import Checkpoint
from kinfolk.lica.inference.held_out import FLOOR
from kinfolk.lica.inference.individual import fit_individual
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.fitted import Learnt
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE


def fit_pooled(
    data: LinearTasks,
    *,
    link: Link,
    noise_variance: float | None = None,
    residual_variance: float | None = None,
    intercept_variance: float = INTERCEPT_VARIANCE,
    n_jobs: int | None = None,
    seed: int = 0,
    checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 - a value
) -> Learnt:
    """Fit one set of weights and one intercept to the rows of all tasks.

    Parameters are those of ``fit_individual``. The prior that is returned has the pooled weights as its mean and hardly
    any noise.

    Returns
    -------
    Learnt

    Examples
    --------
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> data = make_linear_tasks([[-1.0], [1.0]], rows=[[0, 1], [0, 1]], y=[[-1.0, 1.0], [1.0, -1.0]])
    >>> found = fit_pooled(data, link="logistic", noise_variance=1.0)
    >>> [abs(task.weights.round(3)) for task in found.tasks]
    [array([0.]), array([0.])]
    """
    # Tasks on the same rows repeat them; a row counts once for each target that it has, with the sum of its weights.
    pairs = np.stack([np.concatenate(data.rows).astype(np.float64), np.concatenate(data.y)])
    found, place = np.unique(pairs, axis=1, return_inverse=True)
    weights = np.bincount(place.ravel(), weights=np.concatenate(data.weights), minlength=found.shape[1])
    counted = np.asarray(weights, dtype=np.float64)
    together = LinearTasks(data.X, (found[0].astype(np.int64),), (found[1],), (counted,), shares_rows=True)
    one = fit_individual(
        together,
        link=link,
        noise_variance=noise_variance,
        residual_variance=residual_variance,
        intercept_variance=intercept_variance,
        n_jobs=n_jobs,
        seed=seed,
        checkpoint=checkpoint,
    )
    pooled = one.tasks[0].weights
    prior = one.prior._replace(mean=pooled, noise=np.full(pooled.size, FLOOR * float(np.median(one.prior.noise))))
    return one._replace(prior=prior, tasks=one.tasks * len(data.rows))
