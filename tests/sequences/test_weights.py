"""Draws count by the weights of their chains in every answer: with nearly all the weight, a draw answers alone."""

import numpy as np
import pytest
from scipy.special import logsumexp

from kinfolk.sequences.answers.forecasting import draw_sequences, look_ahead
from kinfolk.sequences.answers.kin import kin_of
from kinfolk.sequences.answers.new_tasks import Empty
from kinfolk.sequences.answers.prediction import log_predictive, log_predictive_of_tasks, most_probable_paths
from tests.sequences.test_prediction import N_CODES, N_STATES, keep, one_group, random_draw

CODES = [0, 3, 1, 1, 2, 0]
NEARLY_ALL = np.array([1.0 - 1e-13, 1e-13])
KNOWN, NEW = 1, 0


def two_draws(counts):
    """Draws that differ; with what their rows and shares were drawn given, if these are to be summed out."""
    rng = np.random.default_rng(2)
    draws = [random_draw(rng), random_draw(rng)]
    if not counts:
        return draws
    return [
        draw._replace(
            row_counts=rng.gamma(1.0, 3.0, size=draw.transitions.shape),
            code_counts=rng.gamma(1.0, 3.0, size=(len(draw.base_weights), N_STATES, N_CODES)),
        )
        for draw in draws
    ]


def alone(kept):
    """What is kept, of the first draw alone."""
    return kept._replace(
        draws=kept.draws[:1], empty=Empty(kept.empty.base_weights[:1], kept.empty.parameters[:1]), weights=None
    )


ANSWERS = {
    "score of a known task": lambda kept: log_predictive(kept, one_group(CODES[:1], KNOWN)),
    "score of a new task": lambda kept: log_predictive(kept, one_group(CODES[:1], NEW)),
    "classification": lambda kept: log_predictive_of_tasks(kept, one_group(CODES[:1], KNOWN)),
    "forecast for a known task": lambda kept: ahead(kept, KNOWN),
    "forecast for a new task": lambda kept: ahead(kept, NEW),
}
# Files of earlier versions, whose draws have no counts, have ways of a new task that come from all draws.
CASES = [(answer, True) for answer in ANSWERS] + [(answer, False) for answer in ANSWERS if "new" not in answer]


def ahead(kept, group):
    return look_ahead(kept, one_group(CODES[:1], group), 1, 1, np.random.default_rng(0)).moments[0].mean


@pytest.mark.parametrize(("answer", "counts"), CASES)
def test_a_draw_with_nearly_all_the_weight_answers_alone(answer, counts):
    ask, both = ANSWERS[answer], keep(two_draws(counts))
    wanted = ask(alone(both))
    found = ask(both._replace(weights=NEARLY_ALL))
    # Random numbers of particles that go on depend on how many draws there are.
    np.testing.assert_allclose(found, wanted, atol=0.02)
    assert np.abs(ask(both) - wanted).max() > 0.05


@pytest.mark.parametrize("counts", [False, True], ids=["as drawn", "summed out"])
def test_a_score_is_that_of_draws_by_their_weights(counts):
    both = keep(two_draws(counts))
    sequence = one_group(CODES[:1], KNOWN)
    each = [float(log_predictive(keep([draw]), sequence)[0]) for draw in both.draws]
    found = log_predictive(both._replace(weights=np.array([0.2, 0.8])), sequence)
    assert found[0] == pytest.approx(logsumexp(each, b=[0.2, 0.8]), rel=1e-6)


def test_states_are_those_of_the_draw_that_counts_most_though_another_is_more_probable():
    first, second = two_draws(counts=False)
    both = keep([first._replace(log_joint=-9.0), second._replace(log_joint=-1.0)])
    codes = one_group(list(np.random.default_rng(1).integers(N_CODES, size=40)), KNOWN)
    wanted = most_probable_paths(alone(both), codes)
    np.testing.assert_array_equal(most_probable_paths(both._replace(weights=np.array([0.7, 0.3])), codes), wanted)
    assert (most_probable_paths(both, codes) != wanted).any()


def test_kin_are_those_of_draws_by_their_weights():
    both = keep(two_draws(counts=False), n_clusters=5)
    sequence = one_group(CODES, 0, n_groups=1)
    wanted = kin_of(alone(both), sequence, -8.0)
    found = kin_of(both._replace(weights=NEARLY_ALL), sequence, -8.0)
    np.testing.assert_allclose(found.probability, wanted.probability, atol=1e-9)
    assert found.alone == pytest.approx(wanted.alone, abs=1e-9)
    assert abs(kin_of(both, sequence, -8.0).alone - wanted.alone) > 1e-3


def test_sequences_are_drawn_from_draws_by_their_weights():
    both = keep(two_draws(counts=False))
    ask = [0] * 30, [5] * 30
    (wanted,), _ = draw_sequences(alone(both), *ask, np.random.default_rng(0))
    (found,), _ = draw_sequences(both._replace(weights=NEARLY_ALL), *ask, np.random.default_rng(0))
    np.testing.assert_array_equal(found, wanted)
    (evenly,), _ = draw_sequences(both, *ask, np.random.default_rng(0))
    assert (evenly != wanted).any()
