"""Who asks: whether an automatic answer may go to an organiser at all, and how many a day."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kinfolk_assistant.delivery.online.service import TITLES
from kinfolk_assistant.ledger.tables import Contact, Reply, Request, User
from kinfolk_assistant.ledger.users import known_zone
from kinfolk_assistant.meeting import Meeting
from kinfolk_assistant.reading.origin import Origin
from kinfolk_assistant.reading.trust import Trust, domain_of, forgery_doubt, is_listed


def forged(request: Request, meeting: Meeting, trust: Trust) -> str:
    """Why a request may not be its organiser's; "" where nothing speaks for that.

    What lies in the inbox of the user's own calendar server was put there by that server, which knows who asked. Of a
    file nobody knows where it comes from. Google and Microsoft 365 enter invitations that came by mail, and do not say
    how they were checked; so they are believed only where the administrator says so.
    """
    if is_listed(request.organiser, trust.deny):
        return f"{request.organiser} is on the list of those who are never answered automatically"
    if request.source == "caldav" or request.source in trust.calendars:
        return ""
    if request.source in TITLES:
        return f"{TITLES[request.source]} does not say whether {request.organiser} really sent it"
    if request.source != "mail":
        return "it is not known who sent it"
    return forgery_doubt(meeting, Origin.from_json(request.origin), trust)


def is_stranger(session: Session, user: User, organiser: str, trust: Trust) -> bool:
    """Whether a user has never met an organiser from outside: nothing was accepted, no table names them."""
    if trust.is_inside(organiser, user.address) or is_listed(organiser, trust.allow):
        return False
    met = select(Request.id).where(
        Request.user == user.address, Request.organiser == organiser, Request.label == "accept"
    )
    named = select(Contact.id).where(Contact.user == user.address, Contact.kind == "person", Contact.key == organiser)
    return session.scalars(met.limit(1)).first() is None and session.scalars(named.limit(1)).first() is None


def over_cap(session: Session, user: User, organiser: str, trust: Trust, now: datetime) -> str:
    """Why no further answer goes today to an organiser, to their domain or at all; "" where one may."""
    domain = domain_of(organiser)
    own = select(func.count()).select_from(Reply).join(Request)
    own = own.where(Request.user == user.address, Reply.by == "assistant", Reply.made_at >= _midnight(user, now))
    if session.scalars(own).one() >= user.daily_cap:
        return f"{user.daily_cap} answers were given today already"
    if session.scalars(own.where(Request.organiser == organiser)).one() >= trust.per_organiser:
        return f"{trust.per_organiser} answers went to {organiser} today already"
    if trust.is_inside(organiser, user.address):
        return ""
    if session.scalars(own.where(Request.organiser.endswith(f"@{domain}", autoescape=True))).one() >= trust.per_domain:
        return f"{trust.per_domain} answers went to {domain} today already"
    return ""


def _midnight(user: User, now: datetime) -> datetime:
    local = now.astimezone(known_zone(user.zone))
    return local.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
