"""Data and hyper-parameters as inference takes them, made by hand or taken from a fitted estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kinfolk.maths.dirichlet import DirichletProduct
from kinfolk.naive_bayes.model.values import HyperParameters, TrainingData, feature_product
from kinfolk.partition.concentration import GammaPrior
from kinfolk.tasks.statistics import Rows, Statistics


class Posed(NamedTuple):
    """What there is to infer from."""

    data: TrainingData
    hyper: HyperParameters

    @property
    def statistics(self) -> Statistics:
        return self.data.statistics

    @property
    def label_prior(self) -> Any:
        return self.hyper.label_prior

    @property
    def feature_prior(self) -> Any:
        return self.hyper.feature_prior

    def log_label_evidence(self) -> float:
        return self.hyper.log_label_evidence(self.statistics.label_counts)

    def product(self) -> DirichletProduct:
        return feature_product(self.data, self.hyper)

    def at(self, concentration: float | GammaPrior) -> Posed:
        """The same with this concentration, or one that is drawn from this prior."""
        if isinstance(concentration, GammaPrior):
            return self._replace(hyper=self.hyper._replace(concentration_prior=concentration))
        return self._replace(hyper=self.hyper._replace(concentration=concentration))

    def of(self, statistics: Statistics) -> Posed:
        """The same hyper-parameters with other counts."""
        return self._replace(data=replace(self.data, statistics=statistics))


def pose(statistics: Statistics, unlabelled: Rows, label_prior: Any, feature_prior: Any) -> Posed:
    temper = np.ones(len(statistics.layout.n_values))
    return Posed(TrainingData(statistics, unlabelled), HyperParameters(label_prior, feature_prior, temper))


def posed_to(model: Any) -> Posed:
    """What a fitted estimator inferred from."""
    return Posed(model._sharing().prepared(model._result.data), model._result.hyper)
