"""Figure 4-1 of Roy (2006): learning curves of all users without sharing, by right answers."""

from __future__ import annotations

from kinfolk.experiments.clustered_naive_bayes import accuracy_curves as curves
from kinfolk.experiments.clustered_naive_bayes.learning_curves import NO_SHARING
from kinfolk.experiments.clustered_naive_bayes.stand_in import MADE_UP_MEETINGS, THESIS, meetings_problem
from kinfolk.experiments.publishing import About, Study, judge

ABOUT = About(
    THESIS,
    "For each of the 21 users: trained naive Bayes on from 10 to all but one of the user's requests, in 50 steps of "
    "ten repetitions each, and counted right answers on the others.",
    MADE_UP_MEETINGS,
    (
        "For several users the model correctly predicts 80% of the decisions held out.",
        "On other users it is near or below chance (50%).",
        "Some models perform worse as they get more data, which suggests that the naive Bayes assumption is violated.",
        "On average accuracy improves as the number of training data grows (section 4.2).",
    ),
)


def study(*, quick: bool = False, seed: int = 0, n_steps: int | None = None, n_repeats: int | None = None) -> Study:
    """Measure the curves of all users at once: without sharing, users do not meet."""
    problem = meetings_problem(seed)
    table = curves.measure(
        problem, NO_SHARING, n_steps or (6 if quick else 50), n_repeats or (2 if quick else 10), seed
    )
    ends = curves.ends(table)
    last = ends["last"].to_numpy()
    good, poor = int((last >= 0.8).sum()), int((last <= 0.55).sum())
    falling, rising = curves.trends(table)
    gain, error = curves.gained(ends)
    ours = (
        f"From all but a few of their requests, {good} of {len(last)} users are predicted at 80% or more.",
        f"At 55% or less: {poor} users; the lowest has {last.min():.0%}.",
        f"Between the first and the last fifth of the curve {falling} users fall and {rising} rise, by more than two "
        "standard errors.",
        f"On average accuracy rises by {gain:+.3f} ± {error:.3f} from the shortest to the longest training.",
    )
    held = (judge(good >= 3), judge(poor >= 2), judge(falling >= 1), judge(gain > 2 * error))
    return Study(table, curves.draw(table, problem.people), ours, curves.setting(table, seed), "", held)
