"""The meeting task of Roy (2006), "Clustered Naive Bayes": its features, its people, and made-up requests.

The features are those of the thesis's appendix B, the groups those of its table 4.1. The thesis's own data
set is not public; `make_meetings` draws one like it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.datasets.meeting_rules import GROUPS, RequestMix, Rule, personal_rules

if TYPE_CHECKING:
    from sklearn.utils import Bunch

Codes = NDArray[np.int8]
Scores = NDArray[np.float64]


class Feature(NamedTuple):
    """One feature of a meeting request: its column, its values in the thesis's order, and what it means."""

    name: str
    values: tuple[str, ...]
    meaning: str


# Appendix B prints XXX for the open-ended last value of duration, invitee recent, invitee soon and free slot
# time; here these read "longer", "longer ago", "later" and "longer". It defines no value, so the meanings
# below are this library's reading; that of invitee soon follows section 4.1, "how soon the meeting is".
_IMPORTANCE = ("other", "unimportant", "possibly important", "important", "very important", "critical")
_BUSYNESS = ("light-free", "light-busy", "busy-free", "busy-busy", "booked-free", "booked-busy")

_FEATURES = (
    Feature(
        "start_time",
        ("morning", "afternoon", "early", "mid", "late"),
        "when it starts: early (before 9:00), morning (before 11:30), mid (before 13:30), "
        "afternoon (before 16:30), late",
    ),
    Feature("duration", ("15", "30", "60", "longer"), "length of the meeting: at most so many minutes, or longer"),
    Feature("message_importance", _IMPORTANCE, "how important the request says it is; other: it does not say"),
    Feature("topic_importance", _IMPORTANCE, "how important the topic is to the person asked; other: unknown"),
    Feature(
        "invitee_job",
        ("other", "officer", "planner", "student", "faculty", "administrator", "funding"),
        "occupation of the requester",
    ),
    Feature(
        "invitee_relation",
        ("other", "subordinate", "peer", "supervisor", "family"),
        "what the requester is to the person asked",
    ),
    Feature(
        "invitee_recent",
        ("0", "1", "3", "7", "longer ago"),
        "when the two last met: at most so many days ago, or longer ago (never included)",
    ),
    Feature(
        "invitee_soon",
        ("0", "1", "3", "7", "later"),
        "when the meeting is: in at most so many days, or later",
    ),
    Feature(
        "busy_fday",
        _BUSYNESS,
        "the full day: up to a third of it is taken (light), up to two thirds (busy), or more (booked); then "
        "whether the meeting leaves an unbroken hour of it free (free) or not (busy)",
    ),
    Feature("busy_hday", _BUSYNESS, "the half day, before or after noon, told as busy_fday tells the full day"),
    Feature(
        "free_slot_time",
        ("0", "15", "30", "60", "90", "135", "longer"),
        "free time that borders the requested time: at most so many minutes, or longer",
    ),
    Feature("conflict", ("no", "yes"), "whether an engagement overlaps the requested time"),
    Feature("conflict_importance", _IMPORTANCE, "importance of that engagement; other: unknown, or no conflict"),
    Feature(
        "conflict_frequency",
        ("other", "one time", "occasionally", "regularly"),
        "how often that engagement recurs; other: no conflict",
    ),
    Feature(
        "location",
        ("local-none", "away-none", "local-local", "away-local", "local-away", "away-away"),
        "place of the meeting, then of the engagement that it overlaps or borders; none: there is none",
    ),
)

MEETING_FEATURES: Mapping[str, tuple[str, ...]] = {feature.name: feature.values for feature in _FEATURES}
MEETING_MEANINGS: Mapping[str, str] = {feature.name: feature.meaning for feature in _FEATURES}


class Person(NamedTuple):
    """Someone who answers meeting requests."""

    id: int
    name: str
    institution: str
    group: int


# Numbers, institutions and groups are table 4.1's; the names are made up.
TEAM = (
    Person(1, "Abel", "Military", 1),
    Person(2, "Bryn", "Military", 1),
    Person(3, "Cato", "Military", 1),
    Person(4, "Dara", "Military", 2),
    Person(5, "Edda", "Military", 1),
    Person(6, "Finn", "Military", 1),
    Person(7, "Gwen", "Military", 2),
    Person(8, "Hugo", "Military", 1),
    Person(9, "Iris", "MIT", 3),
    Person(10, "Jory", "SRI", 4),
    Person(11, "Kaia", "Michigan", 3),
    Person(12, "Lars", "MIT", 5),
    Person(13, "Mina", "SRI", 6),
    Person(14, "Nils", "SRI", 4),
    Person(15, "Orla", "SRI", 4),
    Person(16, "Pia", "Berkeley", 7),
    Person(17, "Quin", "MIT", 5),
    Person(18, "Rhys", "SRI", 8),
    Person(19, "Saga", "CMU", 9),
    Person(20, "Timo", "Oregon State", 5),
    Person(21, "Una", "SRI", 4),
)

DESCRIPTION = """\
Meeting requests and their answers, made up
-------------------------------------------
The data set of the thesis "Clustered Naive Bayes" (Roy, 2006) is not public, and this is not it. These
requests are made up: they have the thesis's fifteen features, its 21 people in nine groups and, unless asked
otherwise, the size that Roy and Kaelbling (2007) give for it: 3966 requests, 100 to 400 a person. What is
measured on them says nothing about real people.

A request's features depend on one another as a calendar's do: full days bring conflicts and short gaps, a
supervisor's topics weigh more, urgent messages come at short notice. The institution and the group decide
which requests a person gets. Answers follow readable rules, the first that applies, which differ from group
to group; each person alters none, one or two of the group's rules, and now and then decides against them. No
naive Bayes model has a part in it.

The groups:
""" + "\n".join(f"{number}. {group.summary}" for number, group in GROUPS.items())


@cache
def _condition(feature: str, values: tuple[str, ...]) -> tuple[int, NDArray[np.bool_]]:
    """Column of a feature, and for each of its codes whether it is among the values."""
    return list(MEETING_FEATURES).index(feature), np.isin(MEETING_FEATURES[feature], values)


def _follow(rules: tuple[Rule, ...], requests: Codes) -> NDArray[np.bool_]:
    """Whether each request is accepted by the first rule that applies to it."""
    accepted = np.zeros(len(requests), dtype=bool)
    for rule in reversed(rules):
        applies = np.ones(len(requests), dtype=bool)
        for feature, values in rule.conditions:
            column, fits = _condition(feature, values)
            applies &= fits[requests[:, column]]
        accepted[applies] = rule.decision == "accept"
    return accepted


def _vary(weights: Mapping[str, float], feature: str, spread: float, rng: np.random.Generator) -> Scores:
    """Probabilities of the feature's values in their order, each weight moved by a personal factor."""
    in_order = np.array([weights.get(value, 0.0) for value in MEETING_FEATURES[feature]])
    varied: Scores = in_order * np.exp(spread * rng.standard_normal(len(in_order)))
    varied /= varied.sum()
    return varied


def _pick(probabilities: Scores, rng: np.random.Generator, size: int) -> Codes:
    """Draw codes, by one distribution for all or by one row of distributions for each."""
    cumulative = probabilities.cumsum(axis=-1)
    cumulative[..., -1] = 1.0
    codes: Codes = (rng.random(size)[:, None] >= cumulative).sum(axis=1, dtype=np.int8)
    return codes


# Shifts of a request's scores by relation: other, subordinate, peer, supervisor, family.
_TOPIC_BY_RELATION = np.array([-0.4, -0.2, 0.0, 0.6, 0.2])
_PUSH_BY_RELATION = np.array([0.4, 0.0, 0.0, 0.2, -0.5])
_ABSENCE_BY_RELATION = np.array([0.8, -0.4, -0.1, -0.3, -1.2])

# Where scores are cut into the values of a feature.
_LEVEL_CUTS = (-1.1, -0.3, 0.4, 1.2)
_LENGTH_CUTS = (-0.9, 0.1, 1.1)
_DAY_CUTS = (-1.0, -0.4, 0.3, 1.0)
_GAP_CUTS = (0.5, 0.9, 1.3, 1.8, 2.3, 2.9)
_HOURS_OF_DURATION = np.array([0.25, 0.5, 1.0, 2.0])


def _importance(score: Scores, rng: np.random.Generator) -> Codes:
    """Level of importance by score; one in twelve is not known."""
    levels = 1 + np.searchsorted(_LEVEL_CUTS, score)
    return np.where(rng.random(len(score)) < 1 / 12, 0, levels).astype(np.int8)


def _busyness(load: Scores, hours: Scores, span: float, rng: np.random.Generator) -> Codes:
    """How full a stretch of `span` hours is, and whether a meeting so long leaves an hour of it free."""
    longest_gap = span * (1 - load) * rng.uniform(0.4, 1.0, len(load))
    codes: Codes = (2 * np.searchsorted((1 / 3, 2 / 3), load) + (longest_gap - hours < 1)).astype(np.int8)
    return codes


def _draw_requests(mix: RequestMix, n: int, spread: float, rng: np.random.Generator) -> Codes:
    """Draw one person's requests; `spread` says how far the person's mix is from the group's."""
    normal = rng.standard_normal
    scores = ("length", "topic", "push", "notice", "absence", "clash", "conflict_weight")
    mix = mix._replace(**{name: getattr(mix, name) + spread * normal() for name in scores})
    mean_load = np.clip(mix.load + 0.2 * spread * normal(), 0.1, 0.9)

    job = _pick(_vary(mix.jobs, "invitee_job", spread, rng), rng, n)
    # A job that is not in the mix is never drawn, but keeps its row so that codes index the table.
    relations = [
        _vary(mix.relations.get(value, {"other": 1.0}), "invitee_relation", spread, rng)
        for value in MEETING_FEATURES["invitee_job"]
    ]
    relation = _pick(np.array(relations)[job], rng, n)
    topic = mix.topic + _TOPIC_BY_RELATION[relation] + 0.8 * normal(n)
    message = mix.push + _PUSH_BY_RELATION[relation] + 0.7 * topic + 0.5 * normal(n)
    absence = mix.absence + _ABSENCE_BY_RELATION[relation] + 0.7 * normal(n)
    notice = mix.notice - 0.3 * message + 0.7 * normal(n)
    duration = np.searchsorted(_LENGTH_CUTS, mix.length + 0.2 * topic + 0.7 * normal(n))

    hours = _HOURS_OF_DURATION[duration]
    load = rng.beta(6 * mean_load, 6 * (1 - mean_load), n)
    half_load = np.clip(load + 0.15 * normal(n), 0, 1)
    conflict = rng.random(n) < 1 / (1 + np.exp(-(mix.clash + 5 * (half_load - 0.5) + 0.3 * hours)))
    # An overlap can still leave a little free time on the other side of the request.
    gap = np.where(conflict, 0.6 * rng.random(n) ** 2, 0.4 + 3 * (1 - half_load) + 0.4 * normal(n))
    frequency = _pick(np.array([0, 0.6 * (1 - mix.regular), 0.4 * (1 - mix.regular), mix.regular]), rng, n)
    # With a quarter of an hour or less around the request, some engagement borders it.
    engaged = conflict | (gap <= _GAP_CUTS[1]) | (rng.random(n) < half_load)
    engaged_away = rng.random(n) < mix.old_away

    codes: dict[str, NDArray[Any]] = {
        "start_time": _pick(_vary(mix.starts, "start_time", spread, rng), rng, n),
        "duration": duration,
        "message_importance": _importance(message, rng),
        "topic_importance": _importance(topic, rng),
        "invitee_job": job,
        "invitee_relation": relation,
        "invitee_recent": np.searchsorted(_DAY_CUTS, absence),
        "invitee_soon": np.searchsorted(_DAY_CUTS, notice),
        "busy_fday": _busyness(load, hours, 8, rng),
        "busy_hday": _busyness(half_load, hours, 4, rng),
        "free_slot_time": np.searchsorted(_GAP_CUTS, gap),
        "conflict": conflict,
        "conflict_importance": conflict * _importance(mix.conflict_weight + 0.8 * normal(n), rng),
        "conflict_frequency": conflict * frequency,
        "location": 2 * engaged * (1 + engaged_away) + (rng.random(n) < mix.away),
    }
    return np.stack([codes[name] for name in MEETING_FEATURES], axis=1).astype(np.int8)


def _share_out(n_requests: int | tuple[int, int], n_people: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Number of requests per person: the same for all, or many near the fewest and few near the most."""
    low, high = (n_requests, n_requests) if isinstance(n_requests, int | np.integer) else n_requests
    ranks = (rng.permutation(n_people) + 0.5) / n_people
    # This exponent makes 21 people with 100 to 400 requests add up to 3966, as in Roy and Kaelbling (2007).
    return np.rint(low + (high - low) * ranks**2.3753).astype(np.int64)


def _person(i: int) -> Person:
    """Person number `i`, from 0; beyond the team the same groups come round again."""
    lap, place = divmod(i, len(TEAM))
    person = TEAM[place]
    return person if lap == 0 else person._replace(id=i + 1, name=f"{person.name} {lap + 1}")


def _draw_person(
    person: Person, n: int, quirk: float, rng: np.random.Generator
) -> tuple[Codes, tuple[Rule, ...], NDArray[np.bool_]]:
    """Draw one person's requests, own rules, and which of the requests those rules accept."""
    group = GROUPS[person.group]
    while True:
        rules = personal_rules(group.rules, int(rng.binomial(2, quirk)), rng)
        requests = _draw_requests(group.mix, max(n, 100), 0.5 * quirk, rng)
        accepted = _follow(rules, requests)
        # Some alterations would leave next to nothing accepted, or rejected: such people are drawn anew.
        if 0.3 <= accepted.mean() <= 0.75:
            return requests[:n], rules, accepted[:n]


def _table(requests: Codes, frame: Literal["polars", "pandas"] | None) -> Any:
    columns = dict(zip(MEETING_FEATURES, requests.T, strict=True))
    if frame == "polars":
        import polars as pl

        return pl.DataFrame(
            {
                name: pl.Series(MEETING_FEATURES[name], dtype=pl.Enum(MEETING_FEATURES[name])).gather(codes)
                for name, codes in columns.items()
            }
        )
    if frame == "pandas":
        import pandas as pd

        return pd.DataFrame(
            {
                name: pd.Categorical.from_codes(codes, categories=MEETING_FEATURES[name])
                for name, codes in columns.items()
            }
        )
    return np.stack([np.array(MEETING_FEATURES[name], dtype=object)[codes] for name, codes in columns.items()], axis=1)


def _check(n_people: int, n_requests: int | tuple[int, int], frame: str | None, **shares: float) -> None:
    if not isinstance(n_people, Integral) or n_people < 1:
        raise ValueError(f"n_people is {n_people!r}, but must be a whole number of at least 1.")
    sizes = n_requests if isinstance(n_requests, tuple) else (n_requests, n_requests)
    if len(sizes) != 2 or not all(isinstance(s, Integral) for s in sizes) or not 1 <= sizes[0] <= sizes[1]:
        raise ValueError(
            f"n_requests is {n_requests!r}, but must be a whole number of at least 1, or a tuple of two, "
            "the fewest and the most."
        )
    for name, share in shares.items():
        if not isinstance(share, Real) or not 0 <= share <= 1:
            raise ValueError(f"{name} is {share!r}, but must be a number from 0 to 1.")
    if frame not in ("polars", "pandas", None):
        raise ValueError(f'frame is {frame!r}, but must be "polars", "pandas" or None.')


def make_meetings(
    n_people: int = 21,
    n_requests: int | tuple[int, int] = (100, 400),
    *,
    noise: float = 0.05,
    quirk: float = 0.5,
    unlabelled: float = 0.0,
    frame: Literal["polars", "pandas"] | None = "polars",
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Make up meeting requests and their answers for people in nine groups of kin.

    The data set of the thesis [1]_ is not public. This is made-up data with its fifteen features (appendix
    B), its people and groups (table 4.1) and the size that [2]_ gives: 3966 requests to 21 people, 100 to
    400 each. The people of a group get similar requests and answer them by nearly the same readable rules;
    groups differ in both. By their rules, all accept between 30 and 75 per cent of what they are asked;
    those asked fewer than 100 times would do so over 100, so a few rows may carry one answer only.

    Parameters
    ----------
    n_people : int, default=21
        How many people. Fewer than 21 are the first of `TEAM`; beyond 21 the same groups come round again.
    n_requests : int or (int, int), default=(100, 400)
        Requests per person: one number for all, or the fewest and the most. Between these the numbers are
        spread so that the mean lies three tenths of the way up.
    noise : float, default=0.05
        Chance that a request is answered against the person's rules.
    quirk : float, default=0.5
        How far people differ from their group, from 0 (not at all) to 1. Each person alters none, one or two
        rules, about 2 × `quirk` on average; the requests a person gets move away from the group's in
        proportion.
    unlabelled : float, default=0.0
        Share of each person's requests that are not answered.
    frame : {"polars", "pandas", None}, default="polars"
        What `data` is: a frame whose columns (`polars.Enum`, `pandas.Categorical`) know all values of their
        feature, or a numpy array of strings.
    random_state : int, RandomState instance or None, default=None
        Seed. The same seed gives the same requests whatever `noise`, `unlabelled` and `frame` are.

    Returns
    -------
    Bunch
        `data`, requests × fifteen features; `target`, "accept", "reject" or None for each request; `task`,
        for each request the id of the person asked; `feature_names`; `people`, a tuple of `Person`; `group`,
        from a person's id to the group; `rules`, from a person's id to the rules that person follows;
        `DESCR`.

    References
    ----------
    .. [1] D. M. Roy, "Clustered Naive Bayes", MEng thesis, Massachusetts Institute of Technology, 2006.
    .. [2] D. M. Roy and L. P. Kaelbling, "Efficient Bayesian Task-Level Transfer Learning", IJCAI 2007.

    Examples
    --------
    >>> from kinfolk.datasets.meetings import make_meetings
    >>> meetings = make_meetings(random_state=0)
    >>> meetings.data.shape
    (3966, 15)
    >>> [person for person, group in meetings.group.items() if group == 5]
    [12, 17, 20]
    """
    _check(n_people, n_requests, frame, noise=noise, quirk=quirk, unlabelled=unlabelled)
    # Loaded here: the assistant needs the features alone, and scikit-learn takes a second to load.
    from sklearn.utils import Bunch, check_random_state

    rng = check_random_state(random_state)
    people = tuple(_person(i) for i in range(n_people))
    sizes = _share_out(n_requests, n_people, rng)
    # A generator for each person, so that nobody's requests hang on how many were drawn for the others.
    seeds = rng.randint(2**31 - 1, size=n_people)

    requests, answers, rules = [], [], {}
    for person, size, seed in zip(people, sizes.tolist(), seeds, strict=True):
        of_person = np.random.default_rng(seed)
        asked, rules[person.id], by_rule = _draw_person(person, size, quirk, of_person)
        accepted = by_rule ^ (of_person.random(size) < noise)
        answer = np.where(accepted, "accept", "reject").astype(object)
        answer[of_person.permutation(size)[: round(unlabelled * size)]] = None
        requests.append(asked)
        answers.append(answer)

    return Bunch(
        data=_table(np.concatenate(requests), frame),
        target=np.concatenate(answers),
        task=np.repeat([person.id for person in people], sizes),
        feature_names=list(MEETING_FEATURES),
        people=people,
        group={person.id: person.group for person in people},
        rules=rules,
        DESCR=DESCRIPTION,
    )
