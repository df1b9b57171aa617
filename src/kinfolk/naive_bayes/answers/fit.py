"""Everything that a fit of a naive Bayes model leaves behind, as one frozen value; its archive is its fields."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.naive_bayes.answers.predictor import NaiveBayesPredictor
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.fitted import Fitted
from kinfolk.naive_bayes.model.hyper import HyperParameters
from kinfolk.tasks.answering import Known
from kinfolk.tasks.schema import Schema
from kinfolk.tasks.statistics import Rows, add_expected
from kinfolk.tasks.table import Backend


class NaiveBayesFit(NamedTuple):
    """What is known of tables (``known``, ``schema``, ``classes``), the data, and what was inferred from them.

    ``rows`` are the labelled rows, none where counts alone were given or the model was loaded; ``averaged`` says how
    blocks are put together in predictions; ``label_distributions`` (rows, classes) belong to the rows of the last call.
    """

    known: Known
    schema: Schema
    classes: NDArray[Any]
    backend: Backend
    data: TrainingData
    rows: Rows
    hyper: HyperParameters
    posterior: Fitted
    averaged: bool
    seed: int
    label_distributions: NDArray[np.float64]

    def predictor(self) -> NaiveBayesPredictor:
        """What answers for this fit, here and from its file."""
        mixture = self.posterior.blocks.mixture
        return NaiveBayesPredictor(self.known, self.schema, self.classes, mixture, self.hyper.temper, self.averaged)

    def own_counts(self) -> NDArray[Any]:
        """Feature counts that each task has brought itself, unlabelled rows by the probabilities of their labels."""
        counts, probability = self.data.statistics.feature_counts, self.posterior.label_probability
        if probability is None or not len(probability):
            return counts
        counts = counts.astype(np.float64)
        add_expected(counts, self.data.unlabelled, self.data.statistics.layout, probability)
        return counts
