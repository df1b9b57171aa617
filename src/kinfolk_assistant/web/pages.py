"""How a page is made: templates that escape everything, and the words in which times and features are told."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from kinfolk_assistant.features.office import NAMES
from kinfolk_assistant.ledger.users import known_zone
from kinfolk_assistant.reading.trust import Trust
from kinfolk_assistant.speech.catalogue import catalogue
from kinfolk_assistant.speech.manner import Manner, wanted_language
from kinfolk_assistant.web.sessions import Visitor

HERE = Path(__file__).parent
ENGLISH = Manner()

FEATURE_TITLES = {
    "start_time": "Start",
    "duration": "Length",
    "message_importance": "Importance it states",
    "topic_importance": "Importance of the topic",
    "invitee_job": "Organiser's occupation",
    "invitee_relation": "Organiser is to you",
    "invitee_recent": "You last met",
    "invitee_soon": "Notice",
    "busy_fday": "That day",
    "busy_hday": "That half day",
    "free_slot_time": "Free time around it",
    "conflict": "Overlap",
    "conflict_importance": "Importance of what it overlaps",
    "conflict_frequency": "What it overlaps recurs",
    "location": "Place",
    "weekday": "Day of the week",
    "hour": "Hour",
    "outsider": "Organiser is from",
    "invited": "Invited",
    "part": "You are",
    "series": "Repeats",
    "acquaintance": "You and the organiser met",
    "organiser": "Organiser",
    "domain": "Organiser's domain",
    "title": "Title",
}

_VALUE_WORDS = {
    "start_time": {
        "early": "before 9:00",
        "morning": "in the morning",
        "mid": "around noon",
        "afternoon": "in the afternoon",
        "late": "late in the day",
    },
    "duration": {"15": "up to 15 minutes", "30": "up to 30 minutes", "60": "up to an hour", "longer": "over an hour"},
    "message_importance": {"other": "not stated"},
    "topic_importance": {"other": "not in your table"},
    "invitee_job": {"other": "not in your table", "funding": "funder"},
    "invitee_relation": {"other": "not in your table"},
    "invitee_recent": {"0": "today", "1": "within a day", "3": "within 3 days", "7": "within a week"},
    "invitee_soon": {
        "0": "today",
        "1": "a day ahead",
        "3": "within 3 days",
        "7": "within a week",
        "later": "over a week",
    },
    "free_slot_time": {"0": "none", "longer": "over 135 minutes"}
    | {minutes: f"up to {minutes} minutes" for minutes in ("15", "30", "60", "90", "135")},
    "conflict": {"no": "nothing", "yes": "another engagement"},
    "conflict_importance": {"other": "unknown, or no overlap"},
    "conflict_frequency": {"other": "no overlap", "one time": "once"},
    "hour": {"before 8": "before 8:00", "19 or later": "19:00 or later"}
    | {str(hour): f"from {hour}:00" for hour in range(8, 19)},
    "outsider": {"inside": "your own domain", "outside": "outside", "private": "a private mailbox"},
    "invited": {
        "two": "you and one other",
        "five": "three to five",
        "nine": "six to nine",
        "fifteen": "ten to fifteen",
        "more": "more than fifteen",
    },
    "part": {"required": "required", "optional": "optional", "not named": "not named"},
    "acquaintance": {
        "never": "never in eight weeks",
        "once": "once in eight weeks",
        "sometimes": "two to four times in eight weeks",
        "often": "often in eight weeks",
        "one-to-one": "regularly, just you two",
    },
    "location": {
        f"{place}-{beside}": f"{near}, {words}"
        for place, near in (("local", "near you"), ("away", "away"))
        for beside, words in (
            ("none", "nothing beside it"),
            ("local", "next to something near"),
            ("away", "next to something away"),
        )
    },
}
_BUSY_WORDS = {"light": "lightly filled", "busy": "half filled", "booked": "mostly filled"}
_GAP_WORDS = {"free": "an hour stays free", "busy": "no free hour is left"}


def value_in_words(feature: str, value: str, manner: Manner = ENGLISH) -> str:
    """Say a feature's value as a person would.

    Examples
    --------
    >>> value_in_words("duration", "15"), value_in_words("busy_fday", "light-busy")
    ('up to 15 minutes', 'lightly filled, no free hour is left')
    """
    if feature in ("busy_fday", "busy_hday"):
        load, _, gap = value.partition("-")
        return f"{manner.tell(_BUSY_WORDS.get(load, load))}, {manner.tell(_GAP_WORDS.get(gap, gap))}"
    words = _VALUE_WORDS.get(feature, {}).get(value)
    # What is named, such as an organiser or the words of a title, is nobody's to translate.
    return value if feature in NAMES else manner.tell(words or value)


def percent(probability: float) -> str:
    """Say a probability; only what is certain is called 0% or 100%.

    Examples
    --------
    >>> percent(0.731), percent(0.9996), percent(0.0001), percent(1.0)
    ('73%', '>99%', '<1%', '100%')
    """
    if 0 < probability < 0.01:
        return "<1%"
    return ">99%" if 0.99 < probability < 1 else f"{probability:.0%}"


def weight(log_ratio: float) -> str:
    """Say how much something speaks for a yes or a no.

    Examples
    --------
    >>> weight(0.3), weight(-2.5)
    ('speaks a little for a yes', 'speaks strongly for a no')
    """
    which = "yes" if log_ratio > 0 else "no"
    # Odds that change by less than two thirds, by up to five times, and by more.
    strength = next(
        (words for most, words in ((0.5, "a little"), (1.6, "clearly")) if abs(log_ratio) < most), "strongly"
    )
    return f"speaks {strength} for a {which}"


def capital(text: str) -> str:
    """Begin with a capital letter, and leave the others."""
    return text[:1].upper() + text[1:]


def tame(text: str, most: int = 300) -> str:
    """Give a stranger's text so that it cannot look like something else: no turned letters, no endless line.

    Characters that turn the direction of writing are left out, and so are those that are not seen.

    Examples
    --------
    >>> tame("a\u202egnp.exe"), tame("x" * 5, most=3)
    ('agnp.exe', 'xx…')
    """
    seen = "".join(sign for sign in text if unicodedata.category(sign) not in ("Cf", "Cc", "Co", "Cn") or sign == "\n")
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"


@cache
def _zone(name: str) -> ZoneInfo:
    try:
        return known_zone(name)
    except ValueError:
        return ZoneInfo("UTC")


@pass_context
def _told(context: Context, text: str) -> str:
    """Say a sentence of ours in the visitor's language; as plain text, which is escaped like any other."""
    return cast(Manner, context["speech"]).tell(text)


@pass_context
def _moment(context: Context, moment: datetime, zone: ZoneInfo) -> str:
    return cast(Manner, context["speech"]).moment(moment, zone)


@pass_context
def _span(
    context: Context, start: datetime, end: datetime, all_day: bool, zone: ZoneInfo, now: datetime
) -> tuple[str, str]:
    return cast(Manner, context["speech"]).span(start, end, all_day, zone, now)


@pass_context
def _words(context: Context, feature: str, value: str) -> str:
    return value_in_words(feature, value, context["speech"])


@pass_context
def _clock_time(context: Context, hour: int) -> str:
    return cast(Manner, context["speech"]).time(datetime(2000, 1, 1, hour))


@pass_context
def _title_of(context: Context, feature: str) -> str:
    return cast(Manner, context["speech"]).tell(FEATURE_TITLES[feature])


@cache
def environment(language: str) -> Environment:
    """Give the templates of a language; theirs alone, because a sentence is chosen when a template is compiled."""
    environment = Environment(
        extensions=["jinja2.ext.i18n"],
        loader=FileSystemLoader(HERE / "templates"),
        # Everything is escaped, whatever a template is called.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    words: Any = catalogue(language)
    environment.install_gettext_callables(words.gettext, words.ngettext, newstyle=True)  # type: ignore[attr-defined]
    environment.filters.update(
        tame=tame, percent=percent, weight=weight, capital=capital, told=_told, moment=_moment, title_of=_title_of
    )
    environment.globals.update(span=_span, words=_words, clock_time=_clock_time)
    static = b"".join(path.read_bytes() for path in sorted((HERE / "static").iterdir()))
    environment.globals["version"] = sha256(static).hexdigest()[:12]
    return environment


def wants_fragment(request: Request) -> bool:
    """Whether the page's own script asks, for a part of the page alone."""
    return "x-fragment" in request.headers


def show(
    request: Request,
    template: str,
    visitor: Visitor | None,
    *,
    status: int = 200,
    manner: Manner | None = None,
    **context: object,
) -> HTMLResponse:
    """Make a page, or a fragment of one."""
    manner = manner or manner_of(request, visitor)
    html = (
        environment(manner.language)
        .get_template(template)
        .render(
            context,
            base=request.scope.get("root_path", ""),
            path=request.url.path,
            visitor=visitor,
            speech=manner,
            zone=_zone(visitor.zone) if visitor else ZoneInfo("UTC"),
            is_inside=partial(_is_inside, request, visitor),
            this_moment=request.app.state.assistant.clock(),
            is_admin=is_admin(request, visitor),
            by_proxy=request.app.state.doorkeeper.proxy_header is not None,
        )
    )
    return HTMLResponse(html, status)


def manner_of(request: Request, visitor: Visitor | None) -> Manner:
    """Give how a visitor is spoken to: as they have set it, or else as their browser asks for."""
    accepted = wanted_language(request.headers.get("accept-language", ""))
    if visitor is None:
        return Manner(accepted)
    return Manner(visitor.language or accepted, visitor.clock, visitor.week_start)


def is_admin(request: Request, visitor: Visitor | None) -> bool:
    """Whether the settings name a visitor among the administrators."""
    accounts = request.app.state.accounts
    return visitor is not None and accounts is not None and visitor.address in accounts.configuration.admins


def _is_inside(request: Request, visitor: Visitor | None, organiser: str) -> bool:
    """Whether an organiser is of the visitor's own organisation."""
    trust: Trust = request.app.state.assistant.trust
    return visitor is not None and trust.is_inside(organiser, visitor.address)


def go_to(request: Request, path: str) -> RedirectResponse:
    """Send the browser to another page of ours, to be read."""
    return RedirectResponse(request.scope.get("root_path", "") + path, 303)
