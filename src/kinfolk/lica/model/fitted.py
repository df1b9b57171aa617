"""What an algorithm finds, and what a fit leaves behind beside what tasks have in common."""

from __future__ import annotations

from typing import NamedTuple

from kinfolk.lica.model.prior import TaskPosterior, TaskPrior
from kinfolk.maths.arrays import Floats

SHARE = 0.5  # of the variance of a weight that the sources have at the start


class Start(NamedTuple):
    """Whether weights have a mean that tasks share, and ``scale`` and ``share`` of ``fit_empirical_bayes``."""

    shared_mean: bool
    scale: float = 1.0
    share: float = SHARE


class Begun(NamedTuple):
    """What rows held out told before empirical Bayes began: its start, and σ² of a regression where it is chosen."""

    start: Start
    residual_variance: float | None = None


class Choice(NamedTuple):
    """A number of sources, and how well each number tried predicted.

    ``scores`` are log probabilities of the rows held out, their weights counted, added up over folds.
    """

    n_sources: int
    tried: tuple[int, ...]
    scores: tuple[float, ...]


class Learnt(NamedTuple):
    """What an algorithm found.

    Parameters
    ----------
    prior : TaskPrior
        What tasks have in common.
    tasks : tuple of TaskPosterior
        What is known of each task.
    objective : ndarray of shape (n_iterations + 1,)
        At the start and after each iteration: the lower bound on log p(y, Λ, Ψ | X), which never falls, of empirical
        Bayes; the joint negative log posterior without constants, which never rises, of a point estimate.
    converged : bool
        Whether an iteration gained less than the tolerance before they ran out.
    loading_variance : float
        τ² of the loadings' prior.
    """

    prior: TaskPrior
    tasks: tuple[TaskPosterior, ...]
    objective: Floats
    converged: bool
    loading_variance: float


class Fitted(NamedTuple):
    """What is known of each task, and how it was found.

    Parameters
    ----------
    tasks : tuple of TaskPosterior
        One for each task.
    objective : ndarray of shape (n_iterations + 1,)
        What was raised: the bound of empirical Bayes, or the joint log posterior of a point estimate.
    converged : bool
        Whether the last iteration gained less than the tolerance.
    loading_variance : float
        τ² of the loadings' prior.
    choice : Choice or None
        How the number of sources was chosen, where it was.
    target_mean : float
        Mean of a regression's targets, about which intercepts have their prior; 0 for a classifier.
    interrupted : bool
        Whether iterations were ended early, with what the last one gave.
    begun : Begun or None
        Where empirical Bayes began, unless it went on from an earlier fit.
    """

    tasks: tuple[TaskPosterior, ...]
    objective: Floats
    converged: bool
    loading_variance: float
    choice: Choice | None = None
    target_mean: float = 0.0
    interrupted: bool = False
    begun: Begun | None = None
