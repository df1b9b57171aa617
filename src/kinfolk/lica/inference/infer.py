"""From the data of many tasks to what they share, by the way of sharing and the inference that were asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from kinfolk.checkpoints import Checkpoint
from kinfolk.interrupts import Stop, stops_safely
from kinfolk.lica.inference.eb import fit_empirical_bayes, fit_task
from kinfolk.lica.inference.hierarchical import HIERARCHY_ROUNDS, fit_hierarchical_gaussian
from kinfolk.lica.inference.individual import fit_individual
from kinfolk.lica.inference.map import fit_point_estimate, fit_point_task
from kinfolk.lica.inference.number_of_sources import choose_n_sources
from kinfolk.lica.inference.pooled import fit_pooled
from kinfolk.lica.inference.residual_level import choose_residual_variance
from kinfolk.lica.inference.starts import choose_start
from kinfolk.lica.model.data import LinearTasks
from kinfolk.lica.model.fitted import Begun, Choice, Fitted, Learnt, Start
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE, TaskPosterior, TaskPrior
from kinfolk.maths.blas import one_blas_thread

_EB_ROUNDS, _MAP_ROUNDS = 200, 1000  # at most, of the fit of one task
_NOT_CONVERGED = "{} did not converge within max_iter={} iterations: allow more, or a larger tol"


class Options(NamedTuple):
    """All that decides how tasks are learnt; ``begun`` where it is known what rows held out tell of the beginning."""

    link: Any
    sharing: str
    inference: str
    n_sources: int | None
    noise: Any
    source_prior: Any
    loading_variance: float | None
    shared_mean: bool
    intercept_variance: float | None
    max_iter: int
    tol: float
    weight_variances: bool
    n_jobs: int | None
    checkpoint: Checkpoint = Checkpoint()
    begun: Begun | None = None

    def kept(self, *depends_on: Any) -> Options:
        """The same, with what is reached kept under these values and all that decides how tasks are learnt."""
        beside = ("n_jobs", "checkpoint")
        own = {name: value for name, value in self._asdict().items() if name not in beside}
        return self._replace(checkpoint=self.checkpoint.of("lica", own, *depends_on))


# Threads over tasks have one BLAS thread each: more would wait for one another.
@one_blas_thread()
def infer(
    data: LinearTasks,
    hyper: TaskPrior | None,
    options: Options,
    seed: int,
    before: Fitted | None = None,
    advance: Callable[[int], None] | None = None,
) -> tuple[TaskPrior, Fitted]:
    """Learn what tasks have in common, and each task.

    Parameters
    ----------
    data : LinearTasks
        The tasks' data.
    hyper, before : TaskPrior and Fitted, optional
        What an earlier fit learnt, to start from.
    options : Options
        How to learn.
    seed : int
        For rows held out and for starts that are random.
    advance : callable, optional
        Told of each iteration done.

    Returns
    -------
    hyper, fitted : TaskPrior and Fitted
    """
    options = options.kept(_table_key(data.X), data[1:], hyper, before, seed)
    # Intercepts have a prior around zero: targets far from it would be drawn there.
    centre = _mean_target(data) if options.link == "gaussian" else 0.0
    data = _moved(data, -centre)
    choice, rises, interrupted, begun = None, False, False, None
    if options.sharing != "sources":
        # The others are solved at once.
        with stops_safely(options.sharing == "hierarchical") as stop:
            learnt = _baseline(data, options, seed)
            interrupted = stop.asked()
    else:
        start, rises = None, options.inference == "eb"
        if hyper is not None and before is not None and len(hyper.noise) == data.X.shape[1]:
            start = Learnt(hyper, before.tasks, before.objective, before.converged, before.loading_variance)
        begin = _begin(data, options, seed) if start is None and (rises or options.n_sources is None) else None
        n_sources, choice = _number_of_sources(data, options, seed, start, begin)
        if start is not None and start.prior.n_sources != n_sources:
            start, begin = None, _begin(data, options, seed) if rises else None
        with stops_safely() as stop:
            if rises:
                learnt, begun = _by_eb(data, options, seed, n_sources, start, begin, advance, stop)
            else:
                learnt = _by_map(data, options, seed, n_sources, start, advance, stop)
        interrupted = stop.asked()
    if not learnt.converged and not interrupted:
        warnings.warn(_NOT_CONVERGED.format("the fit", len(learnt.objective) - 1), ConvergenceWarning, stacklevel=4)
    tasks = tuple(task._replace(intercept=task.intercept + centre) for task in learnt.tasks)
    objective = learnt.objective if rises else -learnt.objective
    return learnt.prior, Fitted(
        tasks, objective, learnt.converged, learnt.loading_variance, choice, centre, interrupted, begun
    )


@one_blas_thread()
def infer_task(data: LinearTasks, hyper: TaskPrior, options: Options, target_mean: float) -> TaskPosterior:
    """Learn one task, with all that tasks share held."""
    data = _moved(data, -target_mean)
    if options.sharing == "sources" and options.inference == "eb":
        settings = {"sources": options.source_prior, "weight_variances": options.weight_variances}
        found, converged = fit_task(hyper, data, options.link, max_iter=_EB_ROUNDS, **settings)
    else:
        found, converged = fit_point_task(data, 0, hyper, link=options.link, max_iter=_MAP_ROUNDS)
    if not converged:
        rounds = _EB_ROUNDS if options.inference == "eb" else _MAP_ROUNDS
        warnings.warn(_NOT_CONVERGED.format("the task", rounds), ConvergenceWarning, stacklevel=4)
    return found._replace(intercept=found.intercept + target_mean)


def _begin(data: LinearTasks, options: Options, seed: int) -> Start:
    """Where empirical Bayes starts; they differ by the variance of loadings, so that one which is given leaves one."""
    if options.begun is not None:
        return options.begun.start
    if options.loading_variance is not None:
        return Start(options.shared_mean)
    choose = partial(
        choose_start,
        data,
        options.link,
        n_sources=options.n_sources,
        noise=options.noise,
        sources=options.source_prior,
        shared_mean=options.shared_mean,
        shared_intercepts=_shares_intercepts(data, options),
        intercept_variance=options.intercept_variance or INTERCEPT_VARIANCE,
        seed=seed,
        n_jobs=options.n_jobs,
    )
    return options.checkpoint.done(choose, "start")


def _number_of_sources(
    data: LinearTasks, options: Options, seed: int, start: Learnt | None, begin: Start | None
) -> tuple[int, Choice | None]:
    """The number asked for, that of the fit to start from, or else the one that predicts rows held out best."""
    n_sources = options.n_sources
    if n_sources is not None:
        n_tasks = len(data.rows)
        if n_sources >= n_tasks > 1:
            warnings.warn(
                f"n_sources={n_sources} is no fewer than the {n_tasks} tasks: each can have a source of its own, "
                "and hardly anything is shared; a number well below is better, or None to choose it",
                UserWarning,
                stacklevel=5,
            )
        return n_sources, None
    if start is not None and start.prior.n_sources:
        return start.prior.n_sources, None
    begin = Start(options.shared_mean) if begin is None else begin
    choose = partial(
        choose_n_sources,
        data,
        options.link,
        noise=options.noise,
        sources=options.source_prior,
        **begin._asdict(),
        shared_intercepts=_shares_intercepts(data, options),
        intercept_variance=options.intercept_variance or INTERCEPT_VARIANCE,
        seed=seed,
        n_jobs=options.n_jobs,
        checkpoint=options.checkpoint.of("number of sources"),
    )
    choice = options.checkpoint.done(choose, "number of sources")
    return choice.n_sources, choice


def _shares_intercepts(data: LinearTasks, options: Options) -> bool:
    """Whether the intercepts' mean and variance are learnt: not where tasks are labels of the same rows."""
    return options.intercept_variance is None and not data.shares_rows


def _by_eb(
    data: LinearTasks,
    options: Options,
    seed: int,
    n_sources: int,
    start: Learnt | None,
    begin: Start | None,
    advance: Callable[[int], None] | None,
    stop: Stop,
) -> tuple[Learnt, Begun | None]:
    hyper = None if start is None else start.prior
    if begin is None:  # a mean of nothing but zeros is one that an earlier fit found no use for
        unused = hyper is not None and hyper.mean is not None and not hyper.mean.any()
        begin = Start(options.shared_mean and not unused)
    if hyper is not None and options.intercept_variance is not None:
        hyper = hyper._replace(intercept_variance=options.intercept_variance, intercept_mean=0.0)
    settings: dict[str, Any] = {
        "n_sources": n_sources,
        "noise": options.noise,
        "sources": options.source_prior,
        **begin._asdict(),
        "shared_intercepts": _shares_intercepts(data, options),
        "loading_variance": options.loading_variance or (None if start is None else start.loading_variance),
        "intercept_variance": options.intercept_variance or INTERCEPT_VARIANCE,
        "n_jobs": options.n_jobs,
    }
    residual = None
    if options.link == "gaussian" and hyper is not None:
        residual = hyper.residual_variance
    elif options.link == "gaussian" and options.begun is not None:
        residual = options.begun.residual_variance
    elif options.link == "gaussian":
        residual = options.checkpoint.done(partial(choose_residual_variance, data, seed, **settings), "residual")
    learnt = fit_empirical_bayes(
        data,
        link=options.link,
        **settings,
        residual_variance=residual,
        max_iter=options.max_iter,
        tol=options.tol,
        start=hyper,
        seed=seed,
        weight_variances=options.weight_variances,
        advance=advance,
        place=options.checkpoint.place("EM"),
        stop=stop,
    )
    if options.shared_mean and learnt.prior.mean is None:
        learnt = learnt._replace(prior=learnt.prior._replace(mean=np.zeros(data.X.shape[1])))
    return learnt, Begun(begin, residual) if hyper is None else None


def _by_map(
    data: LinearTasks,
    options: Options,
    seed: int,
    n_sources: int,
    start: Learnt | None,
    advance: Callable[[int], None] | None,
    stop: Stop,
) -> Learnt:
    return fit_point_estimate(
        data,
        link=options.link,
        n_sources=n_sources,
        noise=options.noise,
        shared_mean=options.shared_mean,
        loading_variance=options.loading_variance,
        intercept_variance=options.intercept_variance or INTERCEPT_VARIANCE,
        max_iter=options.max_iter,
        # The alternation stops by a share of its objective, which falls by far more than nats per row.
        tol=max(10 * options.tol, 1e-6),
        n_jobs=options.n_jobs,
        start=start if start is not None and len(start.tasks) == len(data.rows) else None,
        seed=seed,
        advance=advance,
        place=options.checkpoint.place("alternation"),
        stop=stop,
    )


def _baseline(data: LinearTasks, options: Options, seed: int) -> Learnt:
    common: dict[str, Any] = {
        "link": options.link,
        "intercept_variance": options.intercept_variance or INTERCEPT_VARIANCE,
        "n_jobs": options.n_jobs,
        "seed": seed,
        "checkpoint": options.checkpoint,
    }
    if options.sharing == "individual":
        return fit_individual(data, **common)
    if options.sharing == "pooled":
        return fit_pooled(data, **common)
    # Rounds of a hierarchy are cheap: it never has fewer than by its own default.
    rounds = max(options.max_iter, HIERARCHY_ROUNDS)
    return fit_hierarchical_gaussian(data, noise=options.noise, max_iter=rounds, **common)


def _mean_target(data: LinearTasks) -> float:
    """Mean of the targets of all tasks, weights counted."""
    weights = np.concatenate(data.weights)
    return float(np.average(np.concatenate(data.y), weights=weights if weights.any() else None))


def _table_key(X: Any) -> Any:
    """A table of features as that which results depend on."""
    return (X.shape, X.data, X.indices, X.indptr) if sparse.issparse(X) else X


def _moved(data: LinearTasks, by: float) -> LinearTasks:
    return data._replace(y=tuple(targets + by for targets in data.y)) if by else data
