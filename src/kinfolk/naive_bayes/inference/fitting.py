"""A fit, whatever the model: hyper-parameters and posterior from data, and powers from rows left out.

A model is four functions, which a module holds; ``MODELS`` in ``estimators`` says which estimator has which.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from kinfolk.evidence import Evidence
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.inference.conditional_evidence import Effort
from kinfolk.naive_bayes.inference.leave_one_out import LeftOut
from kinfolk.naive_bayes.inference.options import Options
from kinfolk.naive_bayes.inference.temper import are_enough, learn_temper, some_rows
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.fitted import Fitted
from kinfolk.naive_bayes.model.hyper import GivenHyperParameters, HyperParameters
from kinfolk.tasks.statistics import Rows


class SharingModel(Protocol):
    """How tasks share: what every naive Bayes model knows how to do."""

    def infer(
        self, data: TrainingData, given: GivenHyperParameters, options: Options, seed: int
    ) -> tuple[HyperParameters, Fitted]:
        """Learn the hyper-parameters that were not given, but for powers, and infer the rest."""

    def evidence(self, data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> Evidence:
        """Log p(X, Y), where inference has not left it behind."""

    def leave_out(
        self, data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options
    ) -> LeftOut:
        """What is said of each of these training rows by all others."""

    def labels_given_features(
        self, data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options, effort: Effort
    ) -> Evidence:
        """Log p(Y | X); ``rows`` are all rows of the data, labelled or not."""


class Sharing(NamedTuple):
    """A model with the options and the predictive rule that it is fitted with."""

    model: SharingModel
    options: Options
    averaged: bool = False

    def fit(
        self,
        data: TrainingData,
        rows: Rows,
        given: GivenHyperParameters,
        seed: int,
        temper_before: Floats | None = None,
    ) -> tuple[HyperParameters, Fitted]:
        """Hyper-parameters, given or learnt, and what else was inferred.

        Powers are learnt from the labelled ``rows``; where these are too few beside what is counted, they stay as they
        were before, or one.
        """
        hyper, fitted = self.model.infer(data, given, self.options, seed)
        if given.temper is not None:
            return hyper, fitted
        if are_enough(rows, data):
            some = some_rows(rows, data, fitted.blocks.mixture)
            left_out = self.model.leave_out(data, hyper, fitted, some, self.options)
            return hyper._replace(temper=learn_temper(left_out, self.averaged)), fitted
        return hyper if temper_before is None else hyper._replace(temper=np.asarray(temper_before)), fitted
