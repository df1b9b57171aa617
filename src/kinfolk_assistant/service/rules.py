"""A user's own rules, which come before every probability, and vetoes, which turn an automatic answer into a question.

Of several rules that hold, one that asks wins, and so does asking where one says always and another never.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, time
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kinfolk_assistant.features.people import words_of
from kinfolk_assistant.ledger.deeds import tell
from kinfolk_assistant.ledger.tables import Request, Rule, User
from kinfolk_assistant.ledger.users import NotYours, known_zone, lock_user
from kinfolk_assistant.meeting import Meeting
from kinfolk_assistant.reading.trust import PUBLIC_DOMAINS, domain_of
from kinfolk_assistant.speech.manner import DAYS, Manner

VERDICTS = {"always": "accept", "never": "decline", "ask": "ask"}
"""What a rule says, and the action that follows."""

NIGHT_ENDS, NIGHT_BEGINS = time(7), time(20)
MOST_RULES = 200
ENOUGH = 5
"""After so many answers that were all alike, a rule is proposed."""

_ENGLISH = Manner()
_TEXTS = {"organiser": 320, "domain": 255, "topic": 200}
_NUMBERS = {"from_hour": (0, 24), "to_hour": (0, 24), "shortest": (0, 10_080), "longest": (0, 10_080)}


class Facts(NamedTuple):
    """What rules look at: times are those of the user's zone, ``conflict`` is None where it is not known."""

    organiser: str
    text: str
    start: datetime
    end: datetime
    all_day: bool
    conflict: bool | None
    series: bool


class Ruled(NamedTuple):
    """What the rules decide: an action, the rules behind it, and these in words."""

    action: str
    rules: list[Rule]
    words: str

    def names(self, *conditions: str) -> bool:
        """Whether one of the rules names one of these conditions."""
        return any(getattr(rule, name) not in (None, "") for rule in self.rules for name in conditions)


class Proposal(NamedTuple):
    """A rule that the user's own answers suggest."""

    verdict: str
    organiser: str
    domain: str
    n: int

    @property
    def words(self) -> str:
        """Say what was seen."""
        did = "accepted" if self.verdict == "always" else "declined"
        return f"You {did} {self.n} of {self.n} from {self.organiser or self.domain}."


def facts_of(user: User, request: Request, meeting: Meeting) -> Facts:
    """Give what rules look at."""
    zone = known_zone(user.zone)
    conflict = (request.features or {}).get("conflict")
    return Facts(
        request.organiser,
        "\n".join((meeting.summary, *meeting.categories)),
        request.starts_at.astimezone(zone),
        request.ends_at.astimezone(zone),
        request.all_day,
        None if conflict is None else conflict == "yes",
        bool(meeting.repeats),
    )


def decide_by(rules: Iterable[Rule], facts: Facts) -> Ruled | None:
    """Give what rules decide; None where none of them holds."""
    held = [rule for rule in rules if holds(rule, facts)]
    verdicts = {rule.verdict for rule in held}
    if not held:
        return None
    if "ask" in verdicts:
        held = [rule for rule in held if rule.verdict == "ask"]
    action = "ask" if len(verdicts) > 1 else VERDICTS[held[0].verdict]
    return Ruled(action, held, " and ".join(f"“{in_words(rule)}”" for rule in held[:3]))


def holds(rule: Rule, facts: Facts) -> bool:
    """Whether all that a rule names is so."""
    said = f" {' '.join(words_of(facts.text))} "
    minutes = (facts.end - facts.start).total_seconds() / 60
    domain = domain_of(facts.organiser)
    hour = facts.start.hour + facts.start.minute / 60
    if rule.from_hour is not None or rule.to_hour is not None:
        first, last = rule.from_hour or 0, 24 if rule.to_hour is None else rule.to_hour
        within = first <= hour < last if first <= last else hour >= first or hour < last
        if facts.all_day or not within:
            return False
    return (
        rule.organiser in ("", facts.organiser)
        and (not rule.domain or domain == rule.domain or domain.endswith(f".{rule.domain}"))
        and (not rule.topic or f" {' '.join(words_of(rule.topic))} " in said)
        and (not rule.weekdays or str(facts.start.weekday()) in rule.weekdays)
        and (rule.shortest is None or minutes >= rule.shortest)
        and (rule.longest is None or minutes <= rule.longest)
        and (not rule.conflict or facts.conflict is (rule.conflict == "yes"))
        and (not rule.series or facts.series is (rule.series == "yes"))
    )


def in_words(rule: Rule, manner: Manner = _ENGLISH) -> str:
    """Say a rule, in English as it is kept, or in another manner.

    Examples
    --------
    >>> in_words(Rule(verdict="never", organiser="", domain="vendor.example", topic="", weekdays="4", conflict="",
    ...               series="", from_hour=15))
    'never accept from vendor.example on Friday from 15:00'
    """
    say = manner.say
    days = say(" or ").join(say(DAYS[int(day)]) for day in rule.weekdays)
    verdicts = {"always": "always accept", "never": "never accept", "ask": "ask about meetings"}
    conflicts = {"yes": "that overlap", "no": "that do not overlap"}
    repeats = {"yes": "that repeat", "no": "that do not repeat"}
    parts = [
        say(verdicts[rule.verdict]),
        say("from %(whom)s", whom=rule.organiser) if rule.organiser else "",
        say("from %(whom)s", whom=rule.domain) if rule.domain else "",
        say("about “%(what)s”", what=rule.topic) if rule.topic else "",
        say("on %(days)s", days=days) if days else "",
        say("from %(hour)s:00", hour=rule.from_hour) if rule.from_hour is not None else "",
        say("before %(hour)s:00", hour=rule.to_hour) if rule.to_hour is not None else "",
        say("of %(n)s minutes or more", n=rule.shortest) if rule.shortest is not None else "",
        say("of %(n)s minutes or less", n=rule.longest) if rule.longest is not None else "",
        say(conflicts[rule.conflict]) if rule.conflict else "",
        say(repeats[rule.series]) if rule.series else "",
    ]
    return " ".join(part for part in parts if part)


def vetoed(user: User, facts: Facts, action: str, ruled: Ruled | None) -> str:
    """Why a yes is turned into a question by its hour or day; "" where it is not.

    A rule that names the hour or the day itself has been thought about: the veto does not hold against it.
    """
    vetoes = user.vetoes.split()
    if action != "accept":
        return ""
    names_hour = ruled is not None and ruled.names("from_hour", "to_hour")
    names_day = ruled is not None and ruled.names("weekdays")
    ends_late = facts.end.time() > NIGHT_BEGINS or facts.end.date() > facts.start.date()
    at_night = facts.start.time() < NIGHT_ENDS or ends_late
    if "night" in vetoes and not facts.all_day and at_night and not names_hour:
        return "it is at night"
    if "weekend" in vetoes and facts.start.weekday() >= 5 and not names_day:
        return "it is at the weekend"
    return ""


def rules_of(session: Session, user: str) -> list[Rule]:
    """Give a user's rules, the oldest first."""
    return list(session.scalars(select(Rule).where(Rule.user == user).order_by(Rule.id)))


def add_rule(session: Session, address: str, fields: Mapping[str, Any], now: datetime) -> Rule:
    """Make a rule.

    Raises
    ------
    ValueError
        If it names nothing, or something that cannot be.
    """
    user = lock_user(session, address)
    known = rules_of(session, user.address)
    if len(known) >= MOST_RULES:
        raise ValueError(f"There are {len(known)} rules already; at most {MOST_RULES} are kept.")
    rule = Rule(user=user.address, made_at=now, **_checked(fields))
    words = in_words(rule)
    if words not in map(in_words, known):
        session.add(rule)
        tell(session, user.address, now, "user", "rule", f"You made the rule: {words}.")
        session.flush()
    return rule


def remove_rule(session: Session, address: str, number: int, now: datetime) -> None:
    """Take a rule away."""
    user = lock_user(session, address)
    rule = session.scalars(select(Rule).where(Rule.id == number, Rule.user == user.address)).one_or_none()
    if rule is None:
        raise NotYours(f"There is no rule {number}.")
    tell(session, user.address, now, "user", "rule", f"You removed the rule: {in_words(rule)}.")
    session.delete(rule)


def propose(session: Session, user: str) -> list[Proposal]:
    """Give rules that a user's own answers suggest: to a domain or an organiser they have always answered alike."""
    query = (
        select(Request.organiser, Request.label, func.count())
        .where(Request.user == user, Request.label.is_not(None), Request.organiser != "")
        .group_by(Request.organiser, Request.label)
    )
    by_organiser: dict[str, dict[str, int]] = {}
    by_domain: dict[str, dict[str, int]] = {}
    for organiser, label, n in session.execute(query):
        by_organiser.setdefault(organiser, {})[str(label)] = n
        domain = domain_of(organiser)
        if domain not in PUBLIC_DOMAINS and domain != domain_of(user):
            by_domain.setdefault(domain, {}).setdefault(str(label), 0)
            by_domain[domain][str(label)] += n
    known = rules_of(session, user)
    done = {rule.domain for rule in known} | {rule.organiser for rule in known}
    verdict = {"accept": "always", "decline": "never"}
    found = [
        Proposal(verdict[next(iter(counts))], "", domain, sum(counts.values()))
        for domain, counts in by_domain.items()
        if len(counts) == 1 and sum(counts.values()) >= ENOUGH and domain not in done
    ]
    covered = done | {one.domain for one in found}
    found += [
        Proposal(verdict[next(iter(counts))], organiser, "", sum(counts.values()))
        for organiser, counts in by_organiser.items()
        if len(counts) == 1
        and sum(counts.values()) >= ENOUGH
        and organiser not in done
        and domain_of(organiser) not in covered
    ]
    return sorted(found, key=lambda one: (-one.n, one.organiser, one.domain))


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    verdict = fields.get("verdict")
    if verdict not in VERDICTS:
        raise ValueError("A rule says always, never or ask.")
    found: dict[str, Any] = {"verdict": verdict}
    for name, most in _TEXTS.items():
        found[name] = str(fields.get(name) or "").strip()[:most]
    found["organiser"] = found["organiser"].lower().removeprefix("mailto:")
    found["domain"] = found["domain"].lower().removeprefix("@")
    if found["organiser"] and "@" not in found["organiser"]:
        raise ValueError(f"The organiser {found['organiser'][:80]!r} is no mail address.")
    for name, (least, most) in _NUMBERS.items():
        value = fields.get(name)
        if value is not None and (not isinstance(value, int) or not least <= value <= most):
            raise ValueError(f"The rule's {name.replace('_', ' ')} needs to be from {least} to {most}.")
        found[name] = value
    days = str(fields.get("weekdays") or "")
    if not set(days) <= set("0123456"):
        raise ValueError("The days of a rule are those of the week.")
    found["weekdays"] = "".join(sorted(set(days)))
    for name in ("conflict", "series"):
        if (fields.get(name) or "") not in ("", "yes", "no"):
            raise ValueError(f"A rule's {name} is yes or no.")
        found[name] = fields.get(name) or ""
    if not any(value not in (None, "") for name, value in found.items() if name != "verdict"):
        raise ValueError("A rule needs to name something: an organiser, a domain, a topic, a day, an hour, a length.")
    return found
