"""Rows for these tests: made-up meetings as the assistant's own table, and people who answer by one plain rule."""

from __future__ import annotations

import numpy as np
import polars as pl

from kinfolk.datasets.meetings import MEETING_FEATURES, make_meetings


def team_rows(n_people: int, n_requests: int, seed: int, unlabelled: float = 0.0) -> pl.DataFrame:
    meetings = make_meetings(n_people, n_requests, unlabelled=unlabelled, random_state=seed)
    answers = ["decline" if answer == "reject" else answer for answer in meetings.target]
    users = [f"p{person}@example.org" for person in meetings.task]
    return meetings.data.with_columns(user=pl.Series(users), answer=pl.Series(answers, dtype=pl.String))


def rows_by_rule(user: str, n: int, seed: int, feature: str, accepted: tuple[str, ...]) -> pl.DataFrame:
    """Requests drawn evenly over all values, accepted where one feature has one of some values."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.choice(values, n).tolist() for name, values in MEETING_FEATURES.items()}
    answers = ["accept" if value in accepted else "decline" for value in columns[feature]]
    enums = {name: pl.Enum(values) for name, values in MEETING_FEATURES.items()}
    return pl.DataFrame({**columns, "user": [user] * n, "answer": answers}, schema_overrides=enums)


def request(**known: str) -> dict[str, str | None]:
    return {name: known.get(name) for name in MEETING_FEATURES}
