"""Figure 2-5 of Roy (2006): copies of a prototype by the noisy Dirichlet, near and far."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.experiments.clustered_naive_bayes.stand_in import THESIS
from kinfolk.experiments.publishing import About, Study, judge
from kinfolk.plots import noise_model

STRENGTHS = (100.0, 10.0, 3.0, 0.5, 0.1, 0.01)
N_SAMPLES = 1_000
# Beyond this a copy is at a corner: one value has nearly all of its probability.
CORNER = 0.9

ABOUT = About(
    THESIS,
    "Drew 1,000 samples of the noisy Dirichlet over three values, with an even prototype and six strengths K.",
    "Nothing: the same samples, by the same distribution.",
    (
        "As K grows, most of the mass is in a ball around the prototype.",
        "Below K = 3, where components of Kθ̄ fall below 1, the distribution has several modes, with most of its mass "
        "around the corners.",
    ),
)


def study(*, quick: bool = False, seed: int = 0, n_samples: int | None = None) -> Study:
    """Draw the samples and measure how far they lie from the prototype and how many are at a corner."""
    n_samples = n_samples or (N_SAMPLES if quick else 100 * N_SAMPLES)
    rng = np.random.default_rng(seed)
    rows = []
    for strength in STRENGTHS:
        copies = rng.dirichlet(np.full(3, strength / 3), size=n_samples)
        distance = np.sqrt(((copies - 1 / 3) ** 2).sum(axis=1))
        rows.append(
            {
                "strength": strength,
                "mean_distance": float(distance.mean()),
                "expected_square": 2 / (3 * (strength + 1)),
                "mean_square": float((distance**2).mean()),
                "at_a_corner": float((copies.max(axis=1) > CORNER).mean()),
            }
        )
    table = pl.DataFrame(rows)
    far = dict(table.select("strength", "mean_distance").iter_rows())
    corner = dict(table.select("strength", "at_a_corner").iter_rows())
    falls = all(np.diff([far[strength] for strength in sorted(far)]) < 0)
    below = [strength for strength in STRENGTHS if strength < 3]
    # The distribution is even at K = 3, where every place has the same density.
    crowded = [corner[strength] > 0.5 for strength in below]
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    noise_model(strengths=STRENGTHS, n_samples=N_SAMPLES, axes=axes, random_state=seed)
    ours = (
        "Mean distance from the prototype: " + ", ".join(f"{far[k]:.3f} (K = {k:g})" for k in STRENGTHS) + ".",
        f"Share of copies of which one value has more than {CORNER:.0%}: "
        + ", ".join(f"{corner[k]:.1%} (K = {k:g})" for k in STRENGTHS)
        + ".",
    )
    setting = f"{n_samples:,} samples of each strength, {N_SAMPLES:,} of them drawn; seed {seed}."
    return Study(table, figure, ours, setting, held=(judge(bool(falls)), judge(*crowded)))
