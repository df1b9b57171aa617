"""Options that several commands have, and the ledger and settings that they name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kinfolk_assistant.delivery.configuration import Configuration
    from kinfolk_assistant.ledger.store import Ledger

LEDGER = Path("kinfolk-assistant.db")
EXTRA = (
    "alembic",
    "argon2",
    "caldav",
    "cryptography",
    "fastapi",
    "icalendar",
    "imapclient",
    "jinja2",
    "python_multipart",
    "recurring_ical_events",
    "sqlalchemy",
    "uvicorn",
    "vobject",
)
"""What the packages of the extra are imported as."""

User = Annotated[str, typer.Option("--user", "-u", metavar="ADDRESS", help="Mail address of the user.")]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help=f"The ledger; by default the settings' own, else {LEDGER}."),
]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", metavar="FILE.toml", help="Settings: ledger, mail server, accounts.")
]
PeopleFile = Annotated[
    Path | None, typer.Option("--people", metavar="FILE", help="Table of people and topics, CSV or vCard.")
]


def need_extra() -> None:
    """Say in one sentence how to get the packages that the assistant needs, where they are not installed."""
    from importlib.util import find_spec

    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ImportError(
            f"the assistant needs {', '.join(missing)}, which {verb} not installed: pip install 'kinfolk[assistant]'"
        )


def read_settings(path: Path | None, ledger: Path | None) -> Configuration:
    """What the settings file says, or the defaults where there is none; a ledger that is named counts more."""
    from dataclasses import replace

    from kinfolk.cli.commands import say
    from kinfolk_assistant.delivery.configuration import SHADOW_DAYS, Configuration, read_configuration
    from kinfolk_assistant.reading.trust import Trust

    if path is None:
        trust = Trust(shadow_days=SHADOW_DAYS)
        return Configuration(str(ledger or LEDGER), trust=trust, key_file=(ledger or LEDGER).with_suffix(".key"))
    read = read_configuration(path)
    for warning in read.warnings:
        say(warning)
    return read if ledger is None else replace(read, ledger=str(ledger))


@contextmanager
def open_ledger(path: Path | None, ledger: Path | None, *, new: bool = True) -> Iterator[Ledger]:
    """Open the ledger that settings or options name, and close it in the end; unless ``new``, it must be there."""
    from kinfolk_assistant.ledger.store import Ledger

    url = read_settings(path, ledger).ledger
    if not new and "://" not in url and not Path(url).exists():
        raise ValueError(f"there is no ledger {url}: import a calendar first, or name another with --ledger")
    book = Ledger(url)
    try:
        yield book
    finally:
        book.close()
