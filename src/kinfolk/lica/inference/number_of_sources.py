"""How many sources: as many as predict rows held out best.

The bound on the evidence cannot tell. Because q(θ) and q(s) are independent of each other, each source costs about half
the log of its loadings' size, in units of the noise and summed over all features, for every task: where features are
many the bound prefers no source at all while rows held out are predicted better with several. Integrating Λ out (by
Laplace's method, or by a variational posterior with a scale for each source) keeps that cost and adds its own. On
synthetic tasks (30 tasks of 60 rows, 50 or 2,000 features, 3 or 4 sources) these bounds chose 0 or 1 sources; rows held
out chose the true number in five draws of eight, and one or two fewer in the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel

from kinfolk.checkpoints import Checkpoint
from kinfolk.lica.inference.eb import Alone, Noise, fit_alone, fit_empirical_bayes
from kinfolk.lica.inference.expectation import Family
from kinfolk.lica.inference.held_out import Fold, make_folds, thin
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.factors import SourceKind, log_predictive
from kinfolk.lica.model.fitted import SHARE, Choice, Learnt
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE
from kinfolk.lica.model.task_posterior import moments_of_new_task, predictive_moments
from kinfolk.pieces import delayed

MOST_ROWS = 400  # rows a task that a choice looks at
_PATIENCE = 2  # numbers in a row that predict worse than the best so far
_MAX_ITER, _TOLERANCE = 40, 3e-4  # of the fits that are compared


def choose_n_sources(
    data: LinearTasks,
    link: Link,
    *,
    candidates: Sequence[int] | None = None,
    noise: Noise = "isotropic",
    sources: SourceKind = "laplace",
    shared_mean: bool = False,
    shared_intercepts: bool = False,
    intercept_variance: float = INTERCEPT_VARIANCE,
    scale: float = 1.0,
    share: float = SHARE,
    seed: int = 0,
    n_jobs: int | None = None,
    checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 - a value
) -> Choice:
    """Choose the number of sources by the log probability of rows held out.

    Parameters
    ----------
    data : LinearTasks
        The tasks' data; of tasks with many rows, some hundreds are looked at.
    link : {"logistic", "probit", "gaussian"}
        The likelihood.
    candidates : sequence of int, optional
        Numbers to try, from few to many, until two in a row are worse than the best. By default 1, 2, 3, 4 and so on in
        growing steps up to half the number of tasks. A source for which tasks have no use is shrunk to nothing, so
        that none at all need not be tried.
    noise, sources, shared_mean, shared_intercepts, intercept_variance, scale, share
        As for ``fit_empirical_bayes``.
    seed : int
        Of the split.
    n_jobs : int, optional
        Threads over tasks.
    checkpoint : Checkpoint
        Where the score of each number is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> rng = np.random.default_rng(0)
    >>> X, shared = rng.normal(size=(400, 10)), 2.0 * rng.normal(size=10)
    >>> rows = np.arange(400).reshape(20, 20)
    >>> y = [np.where(X[row] @ shared * rng.laplace() > 0, 1.0, -1.0) for row in rows]
    >>> choice = choose_n_sources(make_linear_tasks(X, rows, y), "logistic")
    >>> choice.n_sources, choice.tried[:2]
    (1, (1, 2))
    """
    data = thin(data, MOST_ROWS, seed)
    tried = growing_numbers(len(data.rows)) if candidates is None else list(candidates)
    folds = [fold._replace(fitted=fold.fitted.compact()) for fold in make_folds(data, seed)]
    if not folds or len(tried) == 1:
        return Choice(tried[0], tuple(tried[:1]), (0.0,))
    settings: dict[str, Any] = {"intercept_variance": intercept_variance, "n_jobs": n_jobs}
    over_folds = Parallel(n_jobs=n_jobs, prefer="threads", max_nbytes=None)
    family = Family(link, sources)
    alone = over_folds(delayed(fit_alone)(fold.fitted, family, scale=scale, **settings) for fold in folds)

    def score_of_fold(n_sources: int, fold: Fold, without: Alone) -> float:
        fit = fit_empirical_bayes(
            fold.fitted,
            link=link,
            sources=sources,
            n_sources=n_sources,
            noise=noise,
            shared_mean=shared_mean,
            shared_intercepts=shared_intercepts,
            max_iter=_MAX_ITER,
            tol=_TOLERANCE,
            share=share,
            alone=without,
            seed=seed,
            **settings,
        )
        return log_probability(fold, fit, link)

    def score_of(n_sources: int) -> float:
        of_folds = zip(folds, alone, strict=True)
        return float(sum(over_folds(delayed(score_of_fold)(n_sources, *own) for own in of_folds)))

    scores: list[float] = []
    for n_sources in tried:
        scores.append(checkpoint.done(partial(score_of, n_sources), n_sources))
        if len(scores) - 1 - int(np.argmax(scores)) >= _PATIENCE:
            break
    return Choice(tried[int(np.argmax(scores))], tuple(tried[: len(scores)]), tuple(scores))


def log_probability(fold: Fold, fit: Learnt, link: Link, *, as_new: bool = False) -> float:
    """Log probability of the rows held out, their weights counted; with ``as_new`` as if each were of a new task."""
    judged = fold.judged
    tasks = [k for k, rows in enumerate(judged.rows) if len(rows)]
    if not tasks:
        return 0.0
    moments = [
        moments_of_new_task(fit.prior, fit.tasks, judged.X[judged.rows[k]])
        if as_new
        else predictive_moments(fit.prior, fit.tasks[k], judged.X[judged.rows[k]])
        for k in tasks
    ]
    mean, variance = (np.concatenate(its) for its in zip(*moments, strict=True))
    y = np.concatenate([judged.y[k] for k in tasks])
    logs = log_predictive(link, y, mean, variance, fit.prior.residual_variance)
    of_tasks = np.split(logs, np.cumsum([len(judged.rows[k]) for k in tasks])[:-1])
    return sum(float(judged.weights[k] @ its) for k, its in zip(tasks, of_tasks, strict=True))


def growing_numbers(n_tasks: int) -> list[int]:
    """1, 2, 3, 4, 5, 7, 9, 12, 16, … up to half the number of tasks."""
    most = max(n_tasks // 2, 1)
    numbers = [1]
    while numbers[-1] < most:
        numbers.append(min(max(numbers[-1] + 1, round(numbers[-1] * 1.33)), most))
    return numbers
