"""Learn from many small, related data sets at once: find which tasks are kin and let just those share.

Public names load when they are first used, so that ``import kinfolk`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kinfolk.decisions import DecisionClassifier, Loss, decide, expected_loss, realised_loss
    from kinfolk.lica.estimators.classifier import LICAClassifier
    from kinfolk.lica.estimators.regressor import LICARegressor
    from kinfolk.linear.estimators.classifier import HierarchicalClassifier
    from kinfolk.linear.estimators.clustered import ClusteredClassifier
    from kinfolk.linear.estimators.regressor import HierarchicalRegressor
    from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
    from kinfolk.naive_bayes.estimators.complete_sharing import CompleteSharingNB
    from kinfolk.naive_bayes.estimators.no_sharing import NoSharingNB
    from kinfolk.naive_bayes.estimators.prototype import PrototypeNB
    from kinfolk.networks.estimators.bayes_nets import BayesNets
    from kinfolk.networks.estimators.multinet import BayesMultinet
    from kinfolk.posterior import load, save
    from kinfolk.sequences.estimators.averaged import AveragedIHMM
    from kinfolk.sequences.estimators.feature import FeatureIHMM
    from kinfolk.sequences.estimators.nested import NestedIHMM
    from kinfolk.sequences.estimators.shared import SharedIHMM
    from kinfolk.sequences.estimators.single import SingleIHMM
    from kinfolk.tasks.answering import UnseenWarning
    from kinfolk.tasks.cutting import cut_sequence
    from kinfolk.tasks.selection.scorers import task_scorer
    from kinfolk.tasks.selection.splitters import FewPerTask, LeaveTasksOut, OneTaskFew, TaskKFold
    from kinfolk.tasks.streaming.counting import count_rows
    from kinfolk.transfer.averaged import AveragedNB
    from kinfolk.transfer.classifier import TransferClassifier
    from kinfolk.transfer.comparison import evaluate
    from kinfolk.transfer.regressor import TransferRegressor

__version__ = "0.1.0"

_HOME = {
    "AveragedIHMM": "kinfolk.sequences.estimators.averaged",
    "AveragedNB": "kinfolk.transfer.averaged",
    "BayesMultinet": "kinfolk.networks.estimators.multinet",
    "BayesNets": "kinfolk.networks.estimators.bayes_nets",
    "ClusteredClassifier": "kinfolk.linear.estimators.clustered",
    "ClusteredNB": "kinfolk.naive_bayes.estimators.clustered",
    "CompleteSharingNB": "kinfolk.naive_bayes.estimators.complete_sharing",
    "DecisionClassifier": "kinfolk.decisions",
    "FewPerTask": "kinfolk.tasks.selection.splitters",
    "FeatureIHMM": "kinfolk.sequences.estimators.feature",
    "HierarchicalClassifier": "kinfolk.linear.estimators.classifier",
    "HierarchicalRegressor": "kinfolk.linear.estimators.regressor",
    "LICAClassifier": "kinfolk.lica.estimators.classifier",
    "LICARegressor": "kinfolk.lica.estimators.regressor",
    "LeaveTasksOut": "kinfolk.tasks.selection.splitters",
    "Loss": "kinfolk.decisions",
    "NestedIHMM": "kinfolk.sequences.estimators.nested",
    "NoSharingNB": "kinfolk.naive_bayes.estimators.no_sharing",
    "OneTaskFew": "kinfolk.tasks.selection.splitters",
    "PrototypeNB": "kinfolk.naive_bayes.estimators.prototype",
    "SharedIHMM": "kinfolk.sequences.estimators.shared",
    "SingleIHMM": "kinfolk.sequences.estimators.single",
    "TaskKFold": "kinfolk.tasks.selection.splitters",
    "TransferClassifier": "kinfolk.transfer.classifier",
    "TransferRegressor": "kinfolk.transfer.regressor",
    "UnseenWarning": "kinfolk.tasks.answering",
    "count_rows": "kinfolk.tasks.streaming.counting",
    "cut_sequence": "kinfolk.tasks.cutting",
    "decide": "kinfolk.decisions",
    "evaluate": "kinfolk.transfer.comparison",
    "expected_loss": "kinfolk.decisions",
    "load": "kinfolk.posterior",
    "realised_loss": "kinfolk.decisions",
    "save": "kinfolk.posterior",
    "task_scorer": "kinfolk.tasks.selection.scorers",
}

# Folders that users look into by name.
_FOLDERS = ("datasets", "plots", "reporting")

__all__ = [
    "AveragedIHMM",
    "AveragedNB",
    "BayesMultinet",
    "BayesNets",
    "ClusteredClassifier",
    "ClusteredNB",
    "CompleteSharingNB",
    "DecisionClassifier",
    "FeatureIHMM",
    "FewPerTask",
    "HierarchicalClassifier",
    "HierarchicalRegressor",
    "LICAClassifier",
    "LICARegressor",
    "LeaveTasksOut",
    "Loss",
    "NestedIHMM",
    "NoSharingNB",
    "OneTaskFew",
    "PrototypeNB",
    "SharedIHMM",
    "SingleIHMM",
    "TaskKFold",
    "TransferClassifier",
    "TransferRegressor",
    "UnseenWarning",
    "count_rows",
    "cut_sequence",
    "decide",
    "evaluate",
    "expected_loss",
    "load",
    "realised_loss",
    "save",
    "task_scorer",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    if name in _FOLDERS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_FOLDERS})
