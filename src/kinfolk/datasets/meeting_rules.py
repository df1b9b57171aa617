"""The nine groups of the made-up meeting data: which requests their people get, and how they answer.

The groups are those of table 4.1 of Roy (2006), "Clustered Naive Bayes"; rules and request mixes are made up.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from numpy.random import Generator

Decision = Literal["accept", "reject"]


class Rule(NamedTuple):
    """One line of a decision list: the first rule whose conditions all hold decides.

    Examples
    --------
    >>> from kinfolk.datasets.meeting_rules import reject
    >>> print(reject(conflict="yes", conflict_importance=("very important", "critical")))
    reject when conflict is yes and conflict_importance is very important or critical
    """

    decision: Decision
    conditions: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        if not self.conditions:
            return f"{self.decision} otherwise"
        return f"{self.decision} when " + " and ".join(
            f"{feature} is {' or '.join(values)}" for feature, values in self.conditions
        )


def _rule(decision: Decision, conditions: Mapping[str, str | tuple[str, ...]]) -> Rule:
    return Rule(
        decision,
        tuple((feature, (v,) if isinstance(v, str) else v) for feature, v in conditions.items()),
    )


def accept(**conditions: str | tuple[str, ...]) -> Rule:
    """Rule that accepts a request where every named feature has the value, or one of the values, given."""
    return _rule("accept", conditions)


def reject(**conditions: str | tuple[str, ...]) -> Rule:
    """Rule that rejects a request where every named feature has the value, or one of the values, given."""
    return _rule("reject", conditions)


class RequestMix(NamedTuple):
    """Which requests a person gets.

    Weights need not sum to one. Scores shift a standard normal that is then cut into the feature's values.
    """

    jobs: Mapping[str, float]  # weight of each invitee_job
    relations: Mapping[str, Mapping[str, float]]  # for each job, weight of each invitee_relation
    starts: Mapping[str, float]  # weight of each start_time
    length: float = 0.0  # score: longer meetings
    topic: float = 0.0  # score: weightier topics
    push: float = 0.0  # score: messages that sound more important than their topic is
    notice: float = 0.0  # score: more days until the meeting
    absence: float = 0.0  # score: more days since the requester was last met
    load: float = 0.5  # mean share of the day that is already taken
    clash: float = -1.4  # log odds of a conflict on a half-taken half day
    conflict_weight: float = 0.0  # score: weightier engagements in the way
    regular: float = 0.4  # share of the engagements in the way that recur regularly
    away: float = 0.2  # share of requests for a meeting elsewhere
    old_away: float = 0.2  # share of existing engagements that are elsewhere


class Group(NamedTuple):
    """People who get much the same requests and answer them by the same rules."""

    summary: str
    mix: RequestMix
    rules: tuple[Rule, ...]


MINOR = ("unimportant", "possibly important")
IMPORTANT = ("important", "very important", "critical")
WEIGHTY = ("very important", "critical")
LIGHT = ("light-free", "light-busy")
BOOKED = ("booked-free", "booked-busy")
AWAY = ("away-none", "away-local", "away-away")

_MILITARY = RequestMix(
    jobs={"officer": 48, "planner": 42, "administrator": 4, "other": 6},
    relations={
        "officer": {"supervisor": 55, "peer": 25, "subordinate": 15, "other": 5},
        "planner": {"peer": 50, "subordinate": 35, "supervisor": 10, "other": 5},
        "administrator": {"subordinate": 50, "peer": 30, "other": 20},
        "funding": {"other": 100},
        "other": {"other": 70, "family": 20, "peer": 10},
    },
    starts={"early": 40, "morning": 25, "mid": 8, "afternoon": 20, "late": 7},
    length=-0.4,
    topic=0.3,
    push=0.4,
    notice=-0.9,
    absence=-0.8,
    load=0.55,
    away=0.3,
    old_away=0.5,
    regular=0.2,
)

_PROFESSOR = RequestMix(
    jobs={"student": 45, "faculty": 32, "administrator": 8, "funding": 6, "other": 9},
    relations={
        "student": {"subordinate": 85, "other": 15},
        "faculty": {"peer": 85, "supervisor": 12, "other": 3},
        "administrator": {"other": 45, "supervisor": 30, "peer": 25},
        "funding": {"other": 60, "supervisor": 40},
        "other": {"family": 50, "other": 45, "peer": 5},
    },
    starts={"early": 3, "morning": 27, "mid": 20, "afternoon": 38, "late": 12},
    length=0.1,
    topic=-0.1,
    notice=0.5,
    absence=0.2,
    load=0.5,
    away=0.1,
    old_away=0.1,
    regular=0.6,
)

_SRI = RequestMix(
    jobs={"other": 34, "administrator": 30, "funding": 20, "planner": 10, "student": 4, "faculty": 2},
    relations={
        "other": {"peer": 65, "subordinate": 15, "other": 12, "family": 8},
        "administrator": {"supervisor": 60, "peer": 20, "other": 20},
        "funding": {"supervisor": 40, "other": 60},
        "planner": {"peer": 75, "supervisor": 15, "other": 10},
        "student": {"subordinate": 90, "other": 10},
        "faculty": {"peer": 50, "other": 50},
    },
    starts={"early": 8, "morning": 38, "mid": 8, "afternoon": 40, "late": 6},
    length=0.6,
    topic=-0.4,
    push=0.3,
    notice=0.2,
    absence=-0.2,
    load=0.4,
    away=0.05,
    old_away=0.05,
    regular=0.75,
)

GROUPS: Mapping[int, Group] = {
    1: Group(
        "line staff of a military exercise: the weight of the topic and a full day decide",
        _MILITARY,
        (
            accept(topic_importance=WEIGHTY),
            reject(busy_fday=BOOKED),
            accept(topic_importance="important"),
            accept(busy_fday=LIGHT, topic_importance=("possibly important", "other")),
            reject(),
        ),
    ),
    2: Group(
        "command cell of a military exercise: rank decides, unless something critical is in the way",
        _MILITARY._replace(
            jobs={"officer": 42, "planner": 28, "administrator": 14, "funding": 8, "other": 8},
            length=0.5,
            load=0.7,
            topic=-0.3,
            push=0.8,
            conflict_weight=0.4,
            away=0.5,
        ),
        (
            reject(conflict_importance="critical"),
            accept(invitee_relation="supervisor"),
            reject(invitee_relation=("subordinate", "other")),
            accept(invitee_job="officer"),
            accept(invitee_job="planner", invitee_soon=("0", "1")),
            reject(),
        ),
    ),
    3: Group(
        "professors who put students first: short talks with students, mornings kept for writing",
        _PROFESSOR._replace(load=0.6, length=-0.4, notice=-0.1),
        (
            accept(invitee_relation="family"),
            reject(start_time=("early", "morning"), invitee_job=("faculty", "administrator", "funding", "other")),
            accept(invitee_job="student", duration=("15", "30")),
            reject(free_slot_time=("0", "15", "30")),
            accept(invitee_job=("student", "faculty")),
            reject(),
        ),
    ),
    4: Group(
        "project researchers: funding first, light days and standing meetings kept, short talks only disturb",
        _SRI,
        (
            accept(invitee_job="funding"),
            reject(conflict_frequency="regularly"),
            reject(busy_fday=LIGHT, invitee_relation=("peer", "other", "subordinate")),
            accept(duration=("60", "longer"), topic_importance=("other", *MINOR)),
            accept(invitee_relation="subordinate"),
            reject(),
        ),
    ),
    5: Group(
        "professors who go by the requester's rank, conflicts and the place: students see the assistants",
        _PROFESSOR._replace(
            jobs={"student": 28, "faculty": 38, "administrator": 16, "funding": 12, "other": 6},
            away=0.35,
            old_away=0.3,
            topic=0.4,
            load=0.35,
        ),
        (
            accept(invitee_job="funding"),
            reject(conflict="yes"),
            reject(location=AWAY, invitee_relation=("subordinate", "peer", "other")),
            accept(invitee_job=("faculty", "administrator")),
            reject(),
        ),
    ),
    6: Group(
        "manager who plans ahead: nothing at short notice, administrators next, then who asks early enough",
        _SRI._replace(
            jobs={"administrator": 52, "other": 26, "funding": 10, "planner": 12},
            load=0.65,
            notice=0.5,
            length=0.0,
            topic=0.3,
            absence=-0.9,
        ),
        (
            reject(invitee_soon=("0", "1")),
            accept(invitee_job="administrator"),
            reject(busy_hday=BOOKED),
            accept(invitee_soon=("7", "later")),
            reject(),
        ),
    ),
    7: Group(
        "professor who never meets before noon and keeps to short meetings",
        _PROFESSOR._replace(
            jobs={"student": 62, "faculty": 18, "funding": 4, "other": 16},
            starts={"early": 4, "morning": 32, "mid": 14, "afternoon": 28, "late": 22},
            load=0.25,
            absence=0.8,
            length=0.4,
        ),
        (
            reject(start_time=("early", "morning")),
            accept(duration=("15", "30")),
            accept(topic_importance=WEIGHTY),
            reject(duration="longer"),
            accept(invitee_recent=("7", "longer ago")),
            reject(),
        ),
    ),
    8: Group(
        "part-timer who is in until early afternoon and takes anything that fits there",
        _SRI._replace(
            jobs={"other": 58, "administrator": 12, "funding": 4, "planner": 22, "student": 4},
            load=0.25,
            topic=-0.8,
            absence=-0.8,
            length=0.2,
        ),
        (
            reject(start_time=("afternoon", "late")),
            accept(conflict="no", duration=("15", "30", "60")),
            accept(conflict_importance=MINOR, message_importance=IMPORTANT),
            reject(),
        ),
    ),
    9: Group(
        "travelling professor: visits count, the message must sound urgent, students wait",
        _PROFESSOR._replace(
            jobs={"student": 22, "faculty": 38, "administrator": 4, "funding": 28, "other": 8},
            away=0.6,
            old_away=0.6,
            notice=1.0,
            load=0.65,
            absence=0.8,
        ),
        (
            reject(invitee_job="student", message_importance=("other", *MINOR)),
            accept(location=("away-none", "away-away")),
            accept(message_importance=WEIGHTY),
            reject(location=("local-away", "away-local")),
            accept(busy_fday=LIGHT),
            reject(),
        ),
    ),
}

# Habits that single people have, whatever their group: each settles some tenth of the requests.
HABITS = (
    reject(start_time="early"),
    reject(start_time="late", invitee_relation=("peer", "subordinate", "other")),
    accept(duration="15", conflict="no"),
    reject(duration="longer", topic_importance=("other", *MINOR)),
    accept(invitee_relation="family"),
    reject(invitee_soon="0", message_importance=("other", *MINOR)),
    accept(invitee_recent="longer ago", invitee_relation=("peer", "supervisor")),
    reject(conflict_frequency="one time"),
    reject(location=("away-local", "local-away")),
    accept(message_importance="critical"),
    reject(busy_hday="booked-busy"),
    accept(start_time="mid", conflict="no"),
)


def personal_rules(rules: tuple[Rule, ...], n_altered: int, rng: Generator) -> tuple[Rule, ...]:
    """Alter a group's rules for one person: each alteration puts a habit, or one of the rules, first."""
    altered = list(rules)
    for _ in range(n_altered):
        if rng.random() < 0.5:
            altered.insert(0, HABITS[rng.integers(len(HABITS))])
        else:
            # The last rule decides whatever is left, so it stays where it is.
            altered.insert(0, altered.pop(rng.integers(1, len(altered) - 1)))
    return tuple(altered)
