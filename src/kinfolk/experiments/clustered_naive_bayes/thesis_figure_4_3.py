"""Figure 4-3 of Roy (2006): learning curves of all users when one model is trained on everybody's requests."""

from __future__ import annotations

from kinfolk.experiments.clustered_naive_bayes import accuracy_curves as curves
from kinfolk.experiments.clustered_naive_bayes.learning_curves import COMPLETE_SHARING
from kinfolk.experiments.clustered_naive_bayes.stand_in import MADE_UP_MEETINGS, THESIS, meetings_problem
from kinfolk.experiments.publishing import About, Study, judge

ABOUT = About(
    THESIS,
    "Trained a single naive Bayes on from 10 to all but one of every user's requests, in 50 steps of ten repetitions "
    "each, and counted right answers on the others, user by user.",
    MADE_UP_MEETINGS,
    ("Again, more data has detrimental effects on the accuracy for some users.",),
)


def study(*, quick: bool = False, seed: int = 0, n_steps: int | None = None, n_repeats: int | None = None) -> Study:
    """Measure the curves."""
    problem = meetings_problem(seed)
    n_steps, n_repeats = n_steps or (6 if quick else 50), n_repeats or (2 if quick else 10)
    table = curves.measure(problem, COMPLETE_SHARING, n_steps, n_repeats, seed)
    falling, rising = curves.trends(table)
    gain, error = curves.gained(curves.ends(table))
    ours = (
        f"Between the first and the last fifth of the curve {falling} users fall and {rising} rise, by more than two "
        f"standard errors; on average accuracy changes by {gain:+.3f} ± {error:.3f}.",
    )
    figure = curves.draw(table, problem.people)
    return Study(table, figure, ours, curves.setting(table, seed), "", (judge(falling >= 1),))
