"""``kinfolk assistant demo``: a made-up team to try the assistant on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfolk_assistant.cli.options import need_extra
from kinfolk_assistant.cli.serving import PORT, Door, Host, Port, run

EXAMPLE = """\b
Example:
  kinfolk assistant demo
  kinfolk assistant demo --people 6 --no-serve -o /tmp/demo"""

PASSWORD = "kinfolk-demo"
SETTINGS = "assistant.toml"
COST_OF_ASKING = 0.2


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the ledger and of answers sent.")
    ] = Path("kinfolk-assistant-demo"),
    people: Annotated[int, typer.Option(metavar="N", min=2, max=21, help="How many of the 21 people.")] = 21,
    serve: Annotated[bool, typer.Option("--serve/--no-serve", help="Serve the pages when all is made.")] = True,
    host: Host = "127.0.0.1",
    port: Port = PORT,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of all that is made up.")] = 0,
) -> None:
    """Make up a team of 21 people with calendars, learn from them, and serve two weeks of invitations to try.

    The people are those of the thesis's institutions and groups; everything about them is made up. Their histories are
    iCalendar that goes through the same import as anybody's. Answers are written into a folder and go nowhere else.
    """
    need_extra()
    from datetime import UTC, datetime

    from kinfolk.progress import progress_bar
    from kinfolk_assistant.delivery.files import FileDeliverer
    from kinfolk_assistant.demo.moving_in import move_in
    from kinfolk_assistant.demo.team import MADE_UP, make_team
    from kinfolk_assistant.ledger.store import Ledger
    from kinfolk_assistant.ledger.tables import User
    from kinfolk_assistant.service.assistant import Assistant
    from kinfolk_assistant.web.passwords import hash_password

    now = datetime.now(UTC)
    output.mkdir(parents=True, exist_ok=True)
    path = output / "ledger.db"
    if path.exists():
        raise ValueError(
            f"{path} is there already: serve it with 'kinfolk assistant serve --settings {output / SETTINGS}', or name "
            "another folder"
        )
    with progress_bar("Making the team up", None, True):
        team = make_team(now, n_people=people, seed=seed)
    book = Ledger(str(path))
    folder = output / "answers"
    folder.mkdir(exist_ok=True)
    # So that what is served later answers into the same folder.
    (output / SETTINGS).write_text(f'ledger = "{path.name}"\n\n[files]\nfolder = "{folder.name}"\n', encoding="utf-8")
    assistant = Assistant(book, FileDeliverer(folder))
    rows = declines = 0
    with progress_bar("Importing calendars", len(team), True) as advance:
        for member in team:
            (report,) = move_in(book, [member], now=now).values()
            rows, declines = rows + report.rows, declines + report.declines
            advance(1)
    hashed = hash_password(PASSWORD)
    with book.begin() as session:
        for user in session.query(User).all():
            user.password_hash = hashed
            user.cost_ask = COST_OF_ASKING
    with progress_bar("Learning", None, True):
        assistant.retrain(force=True)
    for member in team:
        for arriving in member.upcoming:
            assistant.take_in(
                member.circle.owner, [arriving.object], received_at=arriving.received, source="file", source_ref=""
            )
    with progress_bar("Deciding", None, True):
        assistant.work()
    waiting = sum(len(assistant.inbox(member.circle.owner)) for member in team)
    typer.echo(MADE_UP)
    typer.echo(
        f"{len(team)} people, {rows:,} past invitations of which {declines:,} were declined; {waiting} new ones wait. "
        f"Everything is in {output}."
    )
    typer.echo(f"Sign in as any of them, password {PASSWORD}:")
    for member in team:
        typer.echo(f"  {member.circle.owner}  ({member.person.name}, {member.person.institution})")
    if serve:
        run(assistant, Door(host, port))
    else:
        typer.echo(f"Serve it: kinfolk assistant serve --settings {output / SETTINGS}")
        book.close()
