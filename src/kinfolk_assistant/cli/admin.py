"""``kinfolk assistant admin``: users, the switch that stops everything, what is kept how long, backup and restore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfolk_assistant.cli.options import LedgerFile, SettingsFile, need_extra, open_ledger, read_settings

EXAMPLE = """\b
Example:
  kinfolk assistant admin users --settings assistant.toml
  kinfolk assistant admin stop --settings assistant.toml
  kinfolk assistant admin backup /var/backups/assistant.db --settings assistant.toml"""

Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="Mail address of the user.")]
SHORTEST_KEPT = 30

app = typer.Typer(
    name="admin",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="See and do what is an administrator's.",
    epilog=EXAMPLE,
)


@app.command("users")
def users(
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON document.")] = False,
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """List the users: what waits, what is unsent, when their server was last visited, and what went wrong."""
    need_extra()
    from kinfolk.cli.tables import json_text, text_table
    from kinfolk_assistant.service import operating
    from kinfolk_assistant.service.background import log_name

    with open_ledger(settings, ledger, new=False) as book, book.read() as session:
        found = operating.users(session)
    if as_json:
        moments = ("visited_at", "calendar_read_at")
        told = [
            {name: (value and value.isoformat() if name in moments else value) for name, value in one._asdict().items()}
            for one in found
        ]
        typer.echo(json_text({"users": told}), nl=False)
        return
    rows = [
        [
            f"{one.address} ({log_name(one.address)})",
            "shut out" if one.disabled else "automatic" if one.automation else "shows only",
            str(one.open),
            str(one.unsent),
            f"{one.visited_at:%Y-%m-%d %H:%M}" if one.visited_at else "never",
            one.visit_error,
        ]
        for one in found
    ]
    typer.echo(text_table(["user", "state", "open", "unsent", "last visit (UTC)", "what went wrong"], rows), nl=False)


@app.command("status")
def status(settings: SettingsFile = None, ledger: LedgerFile = None) -> None:
    """Give the numbers that /metrics gives: users, queue, replies by state, failing visits."""
    need_extra()
    from kinfolk_assistant.service import operating
    from kinfolk_assistant.web.health import as_metrics

    with open_ledger(settings, ledger, new=False) as book, book.read() as session:
        typer.echo(as_metrics(operating.counts(session)), nl=False)


@app.command("stop")
def stop(settings: SettingsFile = None, ledger: LedgerFile = None) -> None:
    """Let no automatic answer leave from now on, for anybody, until ``resume``."""
    need_extra()
    from datetime import UTC, datetime

    from kinfolk_assistant.service import operating

    with open_ledger(settings, ledger, new=False) as book, book.begin() as session:
        operating.stop(session, datetime.now(UTC))
    typer.echo("All automatic answers are stopped; what users answer by hand is sent.")


@app.command("resume")
def resume(settings: SettingsFile = None, ledger: LedgerFile = None) -> None:
    """Let automatic answers leave again."""
    need_extra()
    from kinfolk_assistant.service import operating

    with open_ledger(settings, ledger, new=False) as book, book.begin() as session:
        operating.resume(session)
    typer.echo("Automatic answers may leave again; what was withdrawn stays with its users.")


@app.command("disable")
def disable(address: Address, settings: SettingsFile = None, ledger: LedgerFile = None) -> None:
    """Shut a user out: sessions end, nobody signs in, nothing is sent automatically."""
    _shut(address, settings, ledger, out=True)


@app.command("enable")
def enable(address: Address, settings: SettingsFile = None, ledger: LedgerFile = None) -> None:
    """Let a user in again."""
    _shut(address, settings, ledger, out=False)


def _shut(address: str, settings: Path | None, ledger: Path | None, *, out: bool) -> None:
    need_extra()
    from datetime import UTC, datetime

    from kinfolk_assistant.ledger.users import NotYours, mail_address
    from kinfolk_assistant.service import operating

    address = mail_address(address)
    with open_ledger(settings, ledger, new=False) as book:
        try:
            with book.begin() as session:
                (operating.disable if out else operating.enable)(session, address, datetime.now(UTC))
        except NotYours:
            raise ValueError(f"there is no user {address}") from None
    typer.echo(f"{address} is shut out." if out else f"{address} is let in.")


@app.command("erase")
def erase(
    address: Address,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Delete a user with everything of theirs, and at once every model that has learnt from them."""
    need_extra()
    from datetime import UTC, datetime

    from kinfolk_assistant.delivery.accounts import Accounts
    from kinfolk_assistant.delivery.keys import read_keys
    from kinfolk_assistant.ledger.users import NotYours, mail_address
    from kinfolk_assistant.service import consent

    address = mail_address(address)
    if not yes:
        typer.confirm(f"Delete {address} with everything of theirs?", abort=True)
    configuration = read_settings(settings, ledger)
    with open_ledger(settings, ledger, new=False) as book:
        try:
            if configuration.services:
                Accounts(configuration, book, read_keys(configuration.key_file)).part(address)
            with book.begin() as session:
                consent.erase(session, address, datetime.now(UTC))
        except NotYours:
            raise ValueError(f"there is no user {address}") from None
        book.tidy()
    typer.echo(f"{address} is erased, and so is every model that had learnt from them; the others are fitted anew.")


@app.command("new-key")
def new_key(settings: SettingsFile = None, ledger: LedgerFile = None) -> None:
    """Make a new key for stored app passwords, seal all of them by it, and take the old keys away.

    Links in mails that were sent before no longer open anything. Stop the server first, or start it anew afterwards.
    """
    need_extra()
    from kinfolk_assistant.delivery.accounts import seal_anew
    from kinfolk_assistant.delivery.keys import add_key, keep_first_key, read_keys

    key_file = read_settings(settings, ledger).key_file
    with open_ledger(settings, ledger, new=False) as book:
        # Killed anywhere in between, both keys are there, and the command can be repeated.
        add_key(key_file)
        with book.begin() as session:
            n = seal_anew(session, read_keys(key_file))
        keep_first_key(key_file)
        book.tidy()
    typer.echo(f"{n} passwords are sealed by a new key in {key_file}. Start the server anew.")


@app.command("prune")
def prune(
    days: Annotated[int, typer.Option(metavar="N", min=SHORTEST_KEPT, help="Keep what is so many days old.")],
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Delete what is older: invitations to meetings that are over, lines of the ledger, entries of calendars."""
    need_extra()
    from datetime import UTC, datetime, timedelta

    from kinfolk_assistant.service import operating

    with open_ledger(settings, ledger, new=False) as book:
        with book.begin() as session:
            found = operating.prune(session, timedelta(days=days), datetime.now(UTC))
        book.tidy()
    typer.echo(f"{found.requests} invitations, {found.deeds} lines and {found.entries} entries of calendars are gone.")


@app.command("backup")
def backup(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write; must not be there yet.")],
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Copy the ledger, whole and of one moment, while the server goes on; the copy is its owner's alone.

    A ledger of an earlier version is copied as it is, before anything brings it up to date.
    """
    need_extra()
    from kinfolk_assistant.ledger.backup import back_up

    url = read_settings(settings, ledger).ledger
    if "://" not in url and not Path(url).exists():
        raise ValueError(f"there is no ledger {url}")
    back_up(url, to)
    typer.echo(f"The ledger was copied to {to}. Keep it like the ledger itself: it holds everybody's meetings.")


@app.command("restore")
def restore(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What backup has written.")],
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Make a ledger of a backup, where there is none yet; answers that had left are not sent again."""
    need_extra()
    from kinfolk_assistant.ledger.backup import restore_to

    url = read_settings(settings, ledger).ledger
    n_held = restore_to(source, url)
    held = f"; {n_held} replies that were on their way are put before their users" if n_held else ""
    typer.echo(f"The ledger {url} is that of {source}{held}.")
