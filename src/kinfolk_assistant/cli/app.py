"""All commands of the assistant, put together; each imports what it works with when it runs."""

from __future__ import annotations

import typer

from kinfolk_assistant.cli import (
    admin,
    deciding,
    demo,
    doctor,
    exporting,
    importing,
    receiving,
    serving,
    setup,
    training,
    users,
)

app = typer.Typer(
    name="assistant",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Example:
  kinfolk assistant demo
  kinfolk assistant user ann@example.org --zone Europe/Berlin
  kinfolk assistant import calendar.ics --user ann@example.org
  kinfolk assistant serve

Everything is kept in one file, the ledger, unless a settings file (--settings) names a database.""",
)


@app.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """Answer meeting invitations on behalf of a team."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("demo", epilog=demo.EXAMPLE)(demo.demo)
app.command("setup", epilog=setup.EXAMPLE)(setup.setup)
app.command("serve", epilog=serving.EXAMPLE)(serving.serve)
app.command("user", epilog=users.EXAMPLE)(users.user)
app.command("import", epilog=importing.EXAMPLE)(importing.import_)
app.command("receive", epilog=receiving.EXAMPLE)(receiving.receive)
app.command("train", epilog=training.EXAMPLE)(training.train)
app.command("decide", epilog=deciding.EXAMPLE)(deciding.decide)
app.command("export", epilog=exporting.EXAMPLE)(exporting.export)
app.command("doctor", epilog=doctor.EXAMPLE)(doctor.doctor)
app.add_typer(admin.app)
