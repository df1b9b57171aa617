"""A user's own accounts, for which they enter app passwords, and the past that they hand over."""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePath
from threading import Lock
from typing import Annotated, Literal

from fastapi import APIRouter, Form, UploadFile
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.delivery.accounts import Accounts, Entered, check_account, forget_account, keep_account
from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.imap_mailbox import Mailbox
from kinfolk_assistant.delivery.online.calendar import OnlineCalendar
from kinfolk_assistant.delivery.online.service import TITLES
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.features.people import People
from kinfolk_assistant.importing.history import import_history
from kinfolk_assistant.importing.report import ImportReport
from kinfolk_assistant.importing.sources import read_history, read_objects
from kinfolk_assistant.ledger.tables import Account, Connection
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.mail import MailedObject
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.web.forms import Text
from kinfolk_assistant.web.guard import LARGEST_HISTORY
from kinfolk_assistant.web.pages import go_to, show
from kinfolk_assistant.web.sessions import Visitor
from kinfolk_assistant.web.visitors import Poster, Reader, Served

router = APIRouter()

Kind = Annotated[Literal["caldav", "imap"], Form()]
# Reading a long past takes a core for seconds: one at a time leaves the others to the pages.
_ONE_AT_A_TIME = Lock()
NOTICES = {
    "entered": "The server lets the assistant in. The password is kept sealed.",
    "removed": "It is removed.",
    "connected": "Your calendar is connected. It is read within a minute.",
    "disconnected": "Your calendar is no longer connected, and what gave access to it is deleted here.",
}


@router.get("/accounts")
def accounts_page(request: Request, assistant: Served, visitor: Reader, did: str = "") -> Response:
    """Show a user's accounts."""
    return accounts_view(request, assistant, visitor, notice=NOTICES.get(did, ""))


@router.post("/accounts/enter")
def enter(
    request: Request,
    assistant: Served,
    visitor: Poster,
    kind: Kind,
    url: Text = "",
    name: Text = "",
    password: Text = "",
) -> Response:
    """Keep an account, once its server has let the assistant in."""
    accounts: Accounts | None = request.app.state.accounts
    keys = request.app.state.keys
    try:
        if accounts is None or keys is None:
            raise ValueError("Accounts cannot be entered here.")
        entered = check_account(Entered(kind, url, name, password), accounts.configuration.hosts)
        _try(entered, accounts.configuration.certificate)
        with assistant.ledger.begin() as session:
            keep_account(session, keys, visitor.address, entered, assistant.clock())
    except (ValueError, ServerTrouble) as error:
        return accounts_view(request, assistant, visitor, wrong=str(error))
    return go_to(request, "/accounts?did=entered")


@router.post("/accounts/remove")
def remove(request: Request, assistant: Served, visitor: Poster, kind: Kind) -> Response:
    """Delete an account and its password."""
    with assistant.ledger.begin() as session:
        forget_account(session, visitor.address, kind, now=assistant.clock())
    return go_to(request, "/accounts?did=removed")


@router.post("/accounts/history")
def upload_history(request: Request, assistant: Served, visitor: Poster, past: UploadFile) -> Response:
    """Learn from a file with the past: a calendar, a mail, a mailbox."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"past{PurePath(past.filename or '').suffix.lower()[:10]}"
            data = past.file.read(LARGEST_HISTORY + 1)
            if len(data) > LARGEST_HISTORY:
                raise ValueError(f"The file has more than the {LARGEST_HISTORY // 2**20} MB that it may have.")
            path.write_bytes(data)
            report = _import(assistant, visitor, read_history(path).objects)
    except ValueError as error:
        return accounts_view(request, assistant, visitor, wrong=str(error).replace("past.", "the file ."))
    return accounts_view(request, assistant, visitor, report=report)


@router.post("/accounts/history-from-calendar")
def import_calendar(request: Request, assistant: Served, visitor: Poster) -> Response:
    """Learn from what stands in the user's calendar account."""
    accounts: Accounts | None = request.app.state.accounts
    account = None if accounts is None else accounts.calendar(visitor.address)
    try:
        if account is None:
            raise ValueError("You have no calendar account here.")
        stored = account.events(assistant.clock()) if isinstance(account, OnlineCalendar) else account.events()
        report = _import(assistant, visitor, read_objects(stored))
    except (ValueError, ServerTrouble) as error:
        return accounts_view(request, assistant, visitor, wrong=str(error))
    return accounts_view(request, assistant, visitor, report=report)


def _import(assistant: Assistant, visitor: Visitor, objects: list[CalendarObject | MailedObject]) -> ImportReport:
    people = People.from_contacts(assistant.contacts(visitor.address))
    with _ONE_AT_A_TIME:
        return import_history(assistant.ledger, visitor.address, objects, people, now=assistant.clock())


def _try(entered: Entered, certificate: str | None) -> None:
    """Sign in once, so that a slip of the pen is seen at once, and what cannot be used is not kept."""
    kind, url, name, password = entered
    if kind == "imap":
        mailbox = Mailbox.from_url(url, name, password, certificate)
        with mailbox.connect() as client:
            client.select_folder(mailbox.folder, readonly=True)
    else:
        with CalDAVAccount(url, name, password, certificate=certificate).connect(patience=20.0) as server:
            server.principal()


def accounts_view(
    request: Request,
    assistant: Assistant,
    visitor: Visitor,
    *,
    notice: str = "",
    wrong: str = "",
    report: ImportReport | None = None,
) -> Response:
    """Make the page of a user's accounts."""
    accounts: Accounts | None = request.app.state.accounts
    with assistant.ledger.read() as session:
        entered = {one.kind: one for one in session.scalars(select(Account).where(Account.user == visitor.address))}
        connection = session.get(Connection, visitor.address)
    can_keep = accounts is not None and request.app.state.keys is not None
    hosts = accounts.configuration.hosts if accounts is not None and can_keep else ()
    services = accounts.configuration.services if accounts is not None and can_keep else {}
    return show(
        request,
        "accounts.html",
        visitor,
        status=400 if wrong else 200,
        user=assistant.settings(visitor.address),
        entered=entered,
        hosts=hosts,
        services=[(name, TITLES[name]) for name in services],
        connection=connection,
        titles=TITLES,
        has_calendar=accounts is not None and accounts.calendar(visitor.address) is not None,
        report=report,
        largest=LARGEST_HISTORY // 2**20,
        notice=notice,
        wrong=wrong,
    )
