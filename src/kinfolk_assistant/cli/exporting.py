"""``kinfolk assistant export``: the rows of the ledger as a table for research."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfolk_assistant.cli.options import LedgerFile, SettingsFile, need_extra, open_ledger

EXAMPLE = """\b
Example:
  kinfolk assistant export -o meetings.csv
  kinfolk fit meetings.csv --task user --label answer -o team.kin"""


def export(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="TABLE", help="CSV, TSV, JSON or Parquet file.")],
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="ADDRESS", help="One user's own rows, agreed or not.")
    ] = None,
    names: Annotated[bool, typer.Option("--names", help="Write addresses and not numbers for people.")] = False,
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Write a table with a row for each request: who was asked, the fifteen features, the answer.

    Only the rows of those who agreed to help others, unless one user's own are asked for. People are numbers; nothing
    else of a meeting is written.
    """
    need_extra()
    import polars as pl

    from kinfolk.cli.tables import check_table_target, write_rows
    from kinfolk.datasets.meetings import MEETING_FEATURES
    from kinfolk_assistant.ledger.tables import Request, User
    from kinfolk_assistant.ledger.users import mail_address

    check_table_target(output, False)
    with open_ledger(settings, ledger, new=False) as book, book.read() as session:
        query = session.query(Request.user, Request.features, Request.label).where(Request.features.is_not(None))
        if user is None:
            query = query.join(User, User.address == Request.user).where(User.agreed_at.is_not(None))
        else:
            query = query.where(Request.user == mail_address(user))
        found = query.order_by(Request.user, Request.received_at, Request.id).all()
    if not found:
        whose = "nobody who agreed to help others has" if user is None else f"{user} has no"
        raise ValueError(f"there is nothing to export: {whose} rows in the ledger")
    number = {address: f"person {place}" for place, address in enumerate(sorted({row[0] for row in found}), 1)}
    schema = {"user": pl.String} | dict.fromkeys(MEETING_FEATURES, pl.String) | {"answer": pl.String}
    rows = [
        {"user": address if names else number[address], "answer": label}
        | {name: (features or {}).get(name) for name in MEETING_FEATURES}
        for address, features, label in found
    ]
    write_rows(pl.DataFrame(rows, schema=schema), {}, output, False)
    typer.echo(f"{len(rows):,} rows of {len(number)} people are in {output}.")
