"""The team's model: rates of names, linear models beside kinship, archives of both."""

from __future__ import annotations

from math import log

import numpy as np
import polars as pl
import pytest

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.features.office import OFFICE_FEATURES
from kinfolk_assistant.learning.kinship import Kinship
from kinfolk_assistant.learning.model import TeamModel
from kinfolk_assistant.learning.names import NameRates
from tests.assistant.learning.made_up import team_rows

ANN, BOB, EVE, NEW = (f"{name}@example.org" for name in ("ann", "bob", "eve", "new"))


def office_rows(users: tuple[str, ...], n: int, seed: int = 0) -> pl.DataFrame:
    """Requests of three organisers, of which people accept what does not come from vendors, and not on Fridays."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in users:
        for _ in range(n):
            row: dict[str, object] = {name: str(rng.choice(values)) for name, values in MEETING_FEATURES.items()}
            row |= {name: str(rng.choice(values)) for name, values in OFFICE_FEATURES.items()}
            organiser = str(rng.choice(["boss@example.org", "peer@example.org", "sales@vendor.example"]))
            accepts = "vendor" not in organiser and row["weekday"] != "Friday"
            row |= {"organiser": organiser, "domain": organiser.split("@")[1], "title": "plans", "user": user}
            rows.append(row | {"answer": "accept" if accepts else "decline"})
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def model() -> TeamModel:
    return TeamModel.fit(office_rows((ANN, BOB, EVE), 60))


def asked(organiser: str, weekday: str) -> dict[str, str | None]:
    return {"organiser": organiser, "domain": organiser.split("@")[1], "weekday": weekday}


def test_organiser_and_weekday_decide_where_people_go_by_them(model: TeamModel) -> None:
    def p(organiser: str, weekday: str, user: str = ANN) -> float:
        found = model.probability(asked(organiser, weekday), user)
        assert found is not None
        return found

    assert p("boss@example.org", "Monday") > 0.9
    assert p("sales@vendor.example", "Monday") < 0.1
    assert p("boss@example.org", "Friday") < 0.5
    # Somebody new profits from what the others do.
    assert p("sales@vendor.example", "Monday", NEW) < 0.2


def test_reasons_name_what_decided(model: TeamModel) -> None:
    reasons = model.reasons(asked("sales@vendor.example", "Monday"), ANN)
    assert {one.feature for one in reasons} <= {"organiser", "domain", "weekday"}
    assert reasons[0].feature in ("organiser", "domain")
    assert reasons[0].log_ratio < 0 < next(one for one in reasons if one.feature == "weekday").log_ratio


def test_an_archive_answers_as_the_model_does_and_one_of_kinship_alone_is_still_read(model: TeamModel) -> None:
    again = TeamModel.from_bytes(model.to_bytes())
    for user in (ANN, NEW):
        values = asked("peer@example.org", "Tuesday")
        assert again.probability(values, user) == pytest.approx(model.probability(values, user), abs=1e-12)
        first, second = (one.reasons(values, user) for one in (again, model))
        assert [one.feature for one in first] == [one.feature for one in second]
    old = Kinship.fit(team_rows(3, 20, 0))
    row = dict.fromkeys(MEETING_FEATURES)
    assert TeamModel.from_bytes(old.to_bytes()).probability(row, old.users[0]) == old.probability(row, old.users[0])


@pytest.mark.parametrize("place", [20, 200, -40])
def test_a_damaged_archive_is_refused_in_one_sentence(model: TeamModel, place: int) -> None:
    stored = bytearray(model.to_bytes())
    with pytest.raises(ValueError, match="The stored model is damaged"):
        TeamModel.from_bytes(bytes(stored[:place]))


def test_rates_of_names_are_shrunk_towards_those_of_others_and_leave_the_row_itself_out() -> None:
    boss = {"organiser": "boss@example.org"}
    rows = [(ANN, boss, True)] * 3 + [(BOB, boss, False)] * 2 + [(ANN, {}, False)] * 3
    rates = NameRates.of(rows)
    team = (3 + 1) / (8 + 2)
    habit = (3 + 4 * team) / (6 + 4)
    others = (0 + 2 * habit) / (2 + 2)
    for own, without in ((3, None), (2, True)):
        rate = (own + 2 * others) / (own + 2)
        expected = log(rate / (1 - rate)) - log(habit / (1 - habit))
        assert rates.columns(ANN, boss, without=without)[0] == pytest.approx(expected)
    assert rates.columns(ANN, {}) == (0.0, 0.0, 0.0)


def test_several_words_of_a_title_count_for_more_than_one_and_less_than_all() -> None:
    rates = NameRates.of([(ANN, {"title": "sales pitch"}, False)] * 5 + [(ANN, {}, True)] * 5)
    one, two = (rates.columns(ANN, {"title": title})[2] for title in ("sales", "sales pitch"))
    assert 2 * one < two < one < 0
