"""Options that several commands have, and the ledger and settings that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kinfolk_assistant.delivery.configuration import Configuration
    from kinfolk_assistant.ledger.store import Ledger

LEDGER = Path("kinfolk-assistant.db")

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
    try:
        import argon2  # noqa: F401
        import caldav  # noqa: F401
        import fastapi  # noqa: F401
        import icalendar  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"the assistant needs {missing.name}, which is not installed: pip install 'kinfolk[assistant]'"
        ) from None


def read_settings(path: Path | None, ledger: Path | None) -> Configuration:
    """What the settings file says, or the defaults where there is none; a ledger that is named counts more."""
    from dataclasses import replace

    from kinfolk.cli.errors import say
    from kinfolk_assistant.delivery.configuration import Configuration, read_configuration

    if path is None:
        return Configuration(ledger=str(ledger or LEDGER))
    read = read_configuration(path)
    for warning in read.warnings:
        say(warning)
    return read if ledger is None else replace(read, ledger=str(ledger))


def open_ledger(path: Path | None, ledger: Path | None, *, new: bool = True) -> Ledger:
    """Open the ledger that settings or options name; unless ``new``, it must be there."""
    from kinfolk_assistant.ledger.store import Ledger

    url = read_settings(path, ledger).ledger
    if not new and "://" not in url and not Path(url).exists():
        raise ValueError(f"there is no ledger {url}: import a calendar first, or name another with --ledger")
    return Ledger(url)
