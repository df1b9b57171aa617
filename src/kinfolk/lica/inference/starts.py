"""Where empirical Bayes starts: several starts, of which the one that predicts rows held out best goes on.

EM stays near where it starts. Where words are many and tasks have no weights in common, a mean that starts as the mean
of tasks fitted one by one takes all that it can explain, the noise goes to nothing behind it, and every task is left
with a coin. A start without a mean, under a larger variance of the weights, with loadings whose prior variance is tied
to it, does not end there. The bound cannot tell (see ``number_of_sources``); rows held out can, after a few iterations.

On text-like tasks with known sources (20 tasks of 50 documents, 2,000 words, 4 sources; six draws, standard errors
0.005 to 0.011) the AUC was above individual learning by 0.026 with the first of these starts, by 0.036 with the second
and by 0.042 with the third.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kinfolk.lica.inference.eb import fit_alone, fit_empirical_bayes
from kinfolk.lica.inference.expectation import Family
from kinfolk.lica.inference.held_out import make_folds, thin
from kinfolk.lica.inference.number_of_sources import MOST_ROWS, growing_numbers, log_probability
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.factors import SourceKind
from kinfolk.lica.model.fitted import Start
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE

_ITERATIONS = 8  # after which all starts but one are abandoned
_CLEAR = 3.0  # nats by which another start must predict the rows held out better than the first
_MOST_TASKS = 200  # that starts are compared on: what tasks have in common shows in so many
_PILOT = 4  # sources at most with which they are compared, where their number is chosen afterwards


STARTS = (Start(True), Start(False, 1.0, 0.25), Start(False, 4.0, 0.25))


def choose_start(
    data: LinearTasks,
    link: Link,
    *,
    n_sources: int | None,
    shared_mean: bool,
    sources: SourceKind = "laplace",
    intercept_variance: float = INTERCEPT_VARIANCE,
    seed: int = 0,
    n_jobs: int | None = None,
    starts: tuple[Start, ...] = STARTS,
    **settings: Any,
) -> Start:
    """Begin from every start with a part of the rows, and go on from the one that predicts the others best.

    Parameters
    ----------
    data : LinearTasks
        The tasks' data; some hundreds of tasks are looked at, and some hundreds of the rows of each.
    link : {"logistic", "probit", "gaussian"}
        The likelihood.
    n_sources : int or None
        Number of sources, where it is known.
    shared_mean : bool
        Whether a mean is allowed at all.
    sources, intercept_variance, n_jobs
        As for ``fit_empirical_bayes``.
    seed : int
        Which rows are held out.
    starts : tuple of Start
        The first counts where no other is clearly better, or no row can be held out.
    **settings
        Others of ``fit_empirical_bayes``.

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> rng = np.random.default_rng(0)
    >>> X, rows = rng.normal(size=(400, 5)), np.arange(400).reshape(20, 20)
    >>> y = [np.where(X[row] @ np.ones(5) > 0, 1.0, -1.0) for row in rows]  # all tasks agree
    >>> choose_start(make_linear_tasks(X, rows, y), "logistic", n_sources=1, shared_mean=True, seed=0).shared_mean
    True
    """
    # Without a mean the first start is still worth a try.
    tried = list(starts) if shared_mean else list(dict.fromkeys(start._replace(shared_mean=False) for start in starts))
    data = thin(_some_tasks(data, seed), MOST_ROWS, seed)
    folds = make_folds(data, seed)[:1]  # one of four parts tells starts apart, and costs little beside the fit
    if not folds or len(tried) == 1:
        return tried[0]
    number = min(_PILOT, growing_numbers(len(data.rows))[-1]) if n_sources is None else n_sources
    common: dict[str, Any] = {"intercept_variance": intercept_variance, "n_jobs": n_jobs}
    part, scores, family = folds[0].fitted.compact(), list[float](), Family(link, sources)
    alone = {1.0: fit_alone(part, family, **common)}
    for start in tried:
        if start.scale not in alone:
            alone[start.scale] = fit_alone(part, family, scale=start.scale, narrower=alone[1.0], **common)
        begun = fit_empirical_bayes(
            part,
            link=link,
            sources=sources,
            n_sources=number,
            alone=alone[start.scale],
            max_iter=_ITERATIONS,
            seed=seed,
            **start._asdict(),
            **common,
            **settings,
        )
        scores.append(log_probability(folds[0], begun, link))
    best = int(np.argmax(scores))
    return tried[best if scores[best] - scores[0] > _CLEAR else 0]


def _some_tasks(data: LinearTasks, seed: int) -> LinearTasks:
    """As many tasks, drawn at random, as tell starts apart."""
    n_tasks = len(data.rows)
    if n_tasks <= _MOST_TASKS:
        return data
    return data.of_tasks(np.sort(np.random.default_rng(seed).permutation(n_tasks)[:_MOST_TASKS]).tolist()).compact()
