"""Figure 2 of Niculescu-Mizil and Caruana: what joint learning gains on ALARM, by the penalty."""

from __future__ import annotations

from typing import Any

from kinfolk.experiments.networks.penalties import about, study_penalties
from kinfolk.experiments.networks.problems import PROBLEMS, Problem
from kinfolk.experiments.publishing import Study

NAME = "ALARM"
ABOUT = about(NAME)


def study(*, quick: bool = False, seed: int = 0, problem: Problem = PROBLEMS[NAME], **settings: Any) -> Study:
    """Learn tasks made from a network with every penalty; settings are those of `study_penalties`."""
    return study_penalties(NAME, problem, quick=quick, seed=seed, **settings)
