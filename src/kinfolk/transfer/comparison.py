"""Which model to take for some tasks, and whether sharing helps: models compared on rows that are held out.

Every model learns from the same training rows of every fold and predicts the same others: rows of known tasks
(:class:`~kinfolk.TaskKFold`, so that a table sorted by task does no harm), or tasks never seen
(:class:`~kinfolk.LeaveTasksOut`). Differences are taken fold by fold. Folds share training rows, so that the plain
standard error is too small: it is widened as Nadeau and Bengio found for such tests ("Inference for the generalization
error", Machine Learning 52, 2003, eq. 9).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.utils.multiclass import type_of_target

from kinfolk.maths.arrays import Floats
from kinfolk.parameters import check_choice, check_whole
from kinfolk.pieces import as_they_come
from kinfolk.progress import progress_bar
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.selection.splitters import LeaveTasksOut, TaskKFold
from kinfolk.tasks.selection.splitting import TaskSplitter
from kinfolk.tasks.table import Backend
from kinfolk.tasks.training import check_labels, receive_labels, receive_table
from kinfolk.transfer.contenders import CLASSIFIERS, REGRESSORS, Answer, Contender, Part, own_contender

# A difference counts where it is so improbable that chance made it.
_LEVEL = 0.05


@dataclass(frozen=True, repr=False)
class Comparison:
    """What :func:`kinfolk.evaluate` found.

    Parameters
    ----------
    measure : str
        What ``losses`` are, in a word: "log loss", in nats for each row, or "mean squared error". Less is better.
    quality : str
        What ``qualities`` are: "accuracy" or "R²". More is better.
    losses, qualities : dict
        For every model by name one number for each fold.
    ways : dict
        How every model treats tasks: "alone", "pooled", "task as a feature" or "sharing".
    seconds : dict
        How long every model took to learn and predict, all folds together.
    best : str
        The model to take: that of the smallest loss.
    sharing_helps : bool or None
        Whether the best of the models that share among kin is better than the best of all others, or worse; None where
        the folds do not show it, or there is only one kind.
    verdict : str
        Both in plain words.
    notes : tuple of str
        What was left out, and what models warned of.
    backend : str
        Library of the table that came in, in which :meth:`table` gives its own.
    predictions : dict
        For every model by name what it predicted of each row by those that were learnt from without it: probabilities
        of shape (n_rows, n_classes), or numbers of shape (n_rows,); NaN in rows that were never tested.
    classes : ndarray or None
        Labels in the order of the columns of ``predictions``; None of numbers.
    """

    measure: str
    quality: str
    losses: dict[str, Floats]
    qualities: dict[str, Floats]
    ways: dict[str, str]
    seconds: dict[str, float]
    best: str
    sharing_helps: bool | None
    verdict: str
    notes: tuple[str, ...]
    backend: Backend = "polars"
    predictions: dict[str, Floats] = field(default_factory=dict)
    classes: NDArray[Any] | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Every model's numbers, the best first.

        Returns
        -------
        list of dict
            ``model``, ``way``, the loss and its error, by how much it is larger than the best's and the error of that
            difference, the quality, and the seconds.
        """
        order = sorted(self.losses, key=lambda name: (float(np.mean(self.losses[name])), name))
        found = []
        for name in order:
            loss, error = mean_and_error(self.losses[name])
            behind, its_error = mean_and_error(self.losses[name] - self.losses[self.best])
            found.append(
                {
                    "model": name,
                    "way": self.ways[name],
                    self.measure: loss,
                    "error": error,
                    "behind": behind,
                    "error of behind": its_error,
                    self.quality: float(np.mean(self.qualities[name])),
                    "seconds": self.seconds[name],
                }
            )
        return found

    def table(self) -> Any:
        """The numbers of :meth:`rows` as a frame.

        Returns
        -------
        frame of the library that the table came from
        """
        rows = self.rows()
        return make_frame({name: [row[name] for row in rows] for name in rows[0]}, self.backend)

    def __repr__(self) -> str:
        lines = [f"{'model':<26}{self.measure:>20}{'behind the best':>20}{self.quality:>10}"]
        for row in self.rows():
            loss = f"{row[self.measure]:.4f} ± {row['error']:.4f}"
            behind = "" if row["model"] == self.best else f"{row['behind']:.4f} ± {row['error of behind']:.4f}"
            lines.append(f"{row['model']:<26}{loss:>20}{behind:>20}{row[self.quality]:>10.3f}")
        return "\n".join([*lines, self.verdict, *self.notes])


def evaluate(
    X: Any,
    y: Any,
    *,
    task: Any = None,
    task_column: str | int | None = None,
    models: Sequence[str] | None = None,
    estimators: Mapping[str, Any] | None = None,
    n_folds: int = 5,
    hold_out: Literal["rows", "tasks"] = "rows",
    target: Literal["auto", "label", "number"] = "auto",
    unlabelled: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Comparison:
    """Compare models on held-out rows or tasks: which to take, and whether sharing between tasks helps.

    Labels are predicted by naive Bayes and linear models that share (among kin, with a prototype, averaged, by latent
    sources), and by the same kinds of models in three ways without sharing: every task alone, all rows pooled, and all
    rows pooled with the task as one more feature. Numbers are predicted by linear models.

    Parameters
    ----------
    X : frame, array or mapping from columns to values
    y : array-like of shape (n_rows,)
        Labels, or numbers; None or NaN where there is none: such rows are learnt from by models that can, and never
        tested.
    task : array-like of shape (n_rows,), optional
        The task of each row; or else ``task_column``.
    task_column : str or int, optional
        The column of the table that holds the task.
    models : sequence of str, optional
        Which to compare, of those in ``kinfolk.transfer.contenders.CLASSIFIERS`` or ``REGRESSORS``; all by default.
    estimators : mapping from str to estimator, optional
        Estimators of kinfolk to compare beside them, by name; copies of them learn, they themselves stay as they are.
    n_folds : int, default=5
        Parts of every task's rows, or of the tasks, that are held out in turn.
    hold_out : {"rows", "tasks"}, default="rows"
        What to hold out: "rows" of every task, for models that will be asked about the tasks they know, or whole
        "tasks", for models that will be asked about new ones.
    target : {"auto", "label", "number"}, default="auto"
        Whether to predict labels or numbers; "auto" takes numbers that are not all whole for numbers.
    unlabelled : optional
        A label that marks a row without one, beside None and NaN.
    random_state : int, default=0
        Seed of the folds and of the models.
    n_jobs : int, optional
        Fits to run side by side, in processes; the result does not depend on it.
    verbose : bool, default=False
        Show progress on standard error.

    Returns
    -------
    Comparison

    See Also
    --------
    AveragedNB : A model that weighs four ways to share itself.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> task, y = np.repeat(np.arange(100), 4), rng.choice(["go", "stop"], 400)
    >>> speaks = (y == "stop") == (task < 50)  # in the last fifty tasks, for the opposite
    >>> X = np.where(speaks[:, np.newaxis] == (rng.random((400, 5)) < 0.8), "red", "blue")
    >>> found = evaluate(X, y, task=task, models=["alone", "pooled", "clustered"])
    >>> found.best, found.sharing_helps
    ('clustered', True)
    """
    check_whole("n_folds", n_folds, 2)
    check_choice("target", target, ("auto", "label", "number"))
    check_choice("hold_out", hold_out, ("rows", "tasks"))
    if task is None and task_column is None:
        raise ValueError("models are compared on rows of several tasks: give task= or task_column=")
    arrival = receive_table(X, model="evaluate", task=task, task_column=task_column)
    table = arrival.table
    names = table.names or [f"column {place}" for place in table.places]
    labels, missing = check_labels(X, y, table.n_rows, unlabelled)
    if target == "auto":
        target = "number" if type_of_target(labels[~missing].tolist()) == "continuous" else "label"
    if target == "number":
        values = np.full(table.n_rows, np.nan)
        values[~missing] = labels[~missing].astype(np.float64)
        contenders, n_classes, classes = REGRESSORS, 0, None
    else:
        received = receive_labels(X, y, table.n_rows, model="evaluate", unlabelled=unlabelled)
        values, contenders, n_classes = received.codes.astype(np.int64), CLASSIFIERS, len(received.classes)
        if n_classes < 2:
            raise ValueError("every label is the same: there is nothing to compare models by")
        classes = received.classes
    chosen = _chosen(models, contenders)
    if estimators:
        contenders = contenders | {name: own_contender(model, classes) for name, model in estimators.items()}
        chosen = [name for name in chosen if name not in estimators] + list(estimators)
    own = dict(zip(names, table.all_values(), strict=True))
    whole = Part(own, values, np.asarray(arrival.known.tasks)[arrival.place])
    coded = [None if gap else 0 if n_classes == 0 else int(code) for gap, code in zip(missing, values, strict=True)]
    splitter: TaskSplitter = TaskKFold(n_folds, random_state=random_state)
    if hold_out == "tasks":
        n_tasks = len(np.unique(whole.task[~missing]))
        if n_tasks < n_folds:
            raise ValueError(f"n_folds={n_folds} parts of tasks are needed, and {n_tasks} tasks have labels")
        splitter = LeaveTasksOut(-(-n_tasks // n_folds), random_state=random_state)
    folds = list(splitter.split(None, coded, task=whole.task))
    jobs = [(name, number) for name in chosen for number in range(len(folds))]
    calls = (
        delayed(_try)(contenders[name].learn, whole, *folds[number], n_classes, random_state) for name, number in jobs
    )
    work = as_they_come(calls, n_jobs)
    trials: dict[str, list[_Trial]] = {name: [] for name in chosen}
    with progress_bar("Comparing models", len(jobs), verbose) as advance:
        for (name, _), trial in zip(jobs, work, strict=True):
            trials[name].append(trial)
            advance(1)
    predictions = {name: _put_together(own, table.n_rows, n_classes) for name, own in trials.items()}
    return _conclude(trials, contenders, predictions, classes, hold_out, arrival.backend)


def _put_together(trials: list[_Trial], n_rows: int, n_classes: int) -> Floats:
    """What a model predicted of all rows, each by those that it learnt from without it."""
    whole = np.full((n_rows, n_classes) if n_classes else n_rows, np.nan)
    for trial in trials:
        if trial.predicted is not None:
            whole[trial.rows] = trial.predicted
    return whole


def _chosen(models: Sequence[str] | None, contenders: Mapping[str, Contender]) -> list[str]:
    if models is None:
        return list(contenders)
    if isinstance(models, str) or not len(models):
        raise ValueError(f"models={models!r}: a list of some of {', '.join(contenders)} is needed")
    for name in models:
        check_choice("models", name, tuple(contenders))
    return list(dict.fromkeys(models))


class _Trial(NamedTuple):
    """A model in one fold: its loss and quality, how long it took, and what it warned of; or why it could not learn.

    ``rows`` are those that were tested, ``predicted`` what it said of them.
    """

    loss: float
    quality: float
    seconds: float
    said: tuple[str, ...]
    failure: str | None = None
    rows: NDArray[Any] | None = None
    predicted: Floats | None = None


def _try(
    learn: Callable[[Part, int, int], Answer],
    whole: Part,
    train: NDArray[Any],
    test: NDArray[Any],
    n_classes: int,
    seed: int,
) -> _Trial:
    """Let a model learn from some rows and predict others."""
    start = perf_counter()
    part, held_out = whole.take(train), whole.take(test)
    if n_classes:
        # Of a label that no training row has, no model can know.
        known = np.isin(held_out.target, part.target)
        held_out, test = held_out.take(known), test[known]
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            predicted = learn(part, n_classes, seed)(held_out)
    except (ValueError, TypeError) as error:
        return _Trial(np.nan, np.nan, 0.0, (), " ".join(str(error).split()))
    said = tuple(str(one.message) for one in caught if not issubclass(one.category, DeprecationWarning))
    if n_classes:
        own = predicted[np.arange(len(predicted)), held_out.target]
        loss = -float(np.log(np.maximum(own, np.finfo(float).tiny)).mean())
        quality = float((predicted.argmax(axis=1) == held_out.target).mean())
    else:
        loss = float(((predicted - held_out.target) ** 2).mean())
        quality = 1.0 - loss / float(np.var(held_out.target))
    return _Trial(loss, quality, perf_counter() - start, said, None, test, predicted)


def mean_and_error(values: Floats) -> tuple[float, float]:
    """The mean over folds, and its standard error for folds that share training rows (Nadeau and Bengio 2003, eq. 9).

    Examples
    --------
    >>> mean, error = mean_and_error(np.array([0.1, 0.2, 0.3, 0.2]))
    >>> round(mean, 3), round(error, 4)
    (0.2, 0.0624)
    """
    n_folds = len(values)
    return float(np.mean(values)), float(np.sqrt((1.0 / n_folds + 1.0 / (n_folds - 1)) * np.var(values, ddof=1)))


def _conclude(
    trials: dict[str, list[_Trial]],
    contenders: Mapping[str, Contender],
    predictions: dict[str, Floats],
    classes: NDArray[Any] | None,
    held_out: str,
    backend: Backend,
) -> Comparison:
    notes = []
    for name, own in list(trials.items()):
        failure = next((trial.failure for trial in own if trial.failure is not None), None)
        if failure is not None:
            notes.append(f"{name} is left out: {failure}")
            del trials[name]
        else:
            # What differs in numbers alone is said once.
            alike = {re.sub(r"[\d.,]+", "#", said): said for trial in own for said in trial.said}
            notes += [f"{name}: {said}" for said in alike.values()]
    if not trials:
        raise ValueError(f"no model could be compared: {'; '.join(notes)}")
    losses = {name: np.array([trial.loss for trial in own]) for name, own in trials.items()}
    measure, quality = ("log loss", "accuracy") if classes is not None else ("mean squared error", "R²")
    ways: dict[str, str] = {name: contenders[name].way for name in trials}
    best = min(losses, key=lambda name: float(np.mean(losses[name])))
    helps, verdict = judge(losses, ways, measure, held_out)
    return Comparison(
        measure,
        quality,
        losses,
        {name: np.array([trial.quality for trial in own]) for name, own in trials.items()},
        ways,
        {name: sum(trial.seconds for trial in own) for name, own in trials.items()},
        best,
        helps,
        verdict,
        tuple(notes),
        backend,
        {name: predictions[name] for name in trials},
        classes,
    )


def judge(
    losses: Mapping[str, Floats], ways: Mapping[str, str], measure: str, held_out: str = "rows"
) -> tuple[bool | None, str]:
    """Say whether sharing helps, and in plain words which model to take.

    Parameters
    ----------
    losses : mapping
        A number for each fold, by model; less is better.
    ways : mapping
        How each model treats tasks.
    measure : str
        What the numbers are.
    held_out : {"rows", "tasks"}, default="rows"
        What they were measured on.

    Returns
    -------
    sharing_helps : bool or None
    verdict : str

    Examples
    --------
    >>> folds = np.array([0.5, 0.6, 0.5, 0.6])
    >>> losses = {"clustered": folds, "alone": folds + [0.1, 0.11, 0.1, 0.12]}
    >>> judge(losses, {"clustered": "sharing", "alone": "alone"}, "log loss")[0]
    True
    """
    order = sorted(losses, key=lambda name: (float(np.mean(losses[name])), name))
    best = order[0]
    loss, error = mean_and_error(losses[best])
    alike = [name for name in order[1:] if not _differs(losses[name] - losses[best])]
    take = f"Take {best!r}: {measure} {loss:.4f} ± {error:.4f} on {held_out} held out"
    take += f"; {_listed(alike)} cannot be told apart from it." if alike else ", better than all others."
    sharing = [name for name in order if ways[name] == "sharing"]
    others = [name for name in order if ways[name] != "sharing"]
    if not sharing or not others:
        return None, take
    gain = losses[others[0]] - losses[sharing[0]]
    mean, its_error = mean_and_error(gain)
    way = "" if others[0] == ways[others[0]] else f" ({ways[others[0]]})"
    against = f"{sharing[0]!r} is {{}} than {others[0]!r}{way} by {abs(mean):.4f} ± {its_error:.4f}"
    if not _differs(gain):
        nearly = against.format("better" if mean > 0 else "worse")
        return None, f"{take} It is not clear whether sharing helps here: {nearly}, which may be chance."
    if mean > 0:
        return True, f"{take} Sharing helps here: {against.format('better')}."
    return False, f"{take} Sharing does not help here: {against.format('worse')}."


def _differs(difference: Floats) -> bool:
    """Whether a mean difference over folds is more than chance."""
    mean, error = mean_and_error(difference)
    return abs(mean) > float(student.ppf(1.0 - _LEVEL / 2.0, len(difference) - 1)) * error


def _listed(names: Sequence[str]) -> str:
    *others, last = map(repr, names)
    return f"{', '.join(others)} and {last}" if others else last
