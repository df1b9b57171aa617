"""Figure 4-4 of Roy (2006): each user's leave-one-out accuracy without sharing and with complete sharing."""

from __future__ import annotations

from kinfolk.experiments.clustered_naive_bayes import left_out_accuracy as left_out
from kinfolk.experiments.clustered_naive_bayes.learning_curves import COMPLETE_SHARING, NO_SHARING
from kinfolk.experiments.clustered_naive_bayes.stand_in import MADE_UP_MEETINGS, THESIS, meetings_problem
from kinfolk.experiments.clustered_naive_bayes.thesis_models import MAJORITY, difference
from kinfolk.experiments.publishing import About, Study, judge

ABOUT = About(
    THESIS,
    "Left out every request in turn and counted right answers of both models, user by user, beside those of the "
    "strategy that always names the user's most common label.",
    MADE_UP_MEETINGS,
    (
        "No sharing significantly outperforms complete sharing under 0-1 loss, on almost all users.",
        "Both models often perform worse than the user's most common label.",
    ),
)


def study(*, quick: bool = False, seed: int = 0, every: int | None = None) -> Study:
    """Measure both models."""
    problem = meetings_problem(seed)
    by_task = left_out.measure(problem, (NO_SHARING, COMPLETE_SHARING), every or (10 if quick else 1))
    mean, error, ahead, behind = difference(by_task, NO_SHARING, COMPLETE_SHARING)
    alone = difference(by_task, NO_SHARING, MAJORITY)
    pooled = difference(by_task, COMPLETE_SHARING, MAJORITY)
    n = len(problem.people)
    ours = (
        f"No sharing is ahead by {mean:+.3f} ± {error:.3f} on average over users: better for {ahead} of {n} users, "
        f"worse for {behind}.",
        f"Worse than the most common label: no sharing for {alone[3]}, complete sharing for {pooled[3]} of {n} users.",
    )
    held = (judge(mean > 2 * error, ahead > 0.8 * n), judge(alone[3] >= n / 3, pooled[3] >= n / 3))
    return Study(by_task, left_out.draw(by_task), ours, left_out.setting(by_task, seed), "", held)
