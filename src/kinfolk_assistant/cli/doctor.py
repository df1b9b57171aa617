"""``kinfolk assistant doctor``: checks every connection that the settings name, and says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfolk_assistant.cli.options import need_extra, read_settings

EXAMPLE = """\b
Example:
  kinfolk assistant doctor --settings assistant.toml"""


def doctor(
    settings: Annotated[
        Path, typer.Option("--settings", metavar="FILE.toml", help="Settings: ledger, mail server, accounts.")
    ],
) -> int:
    """Check the ledger, the mail server and every CalDAV account, and say what is wrong.

    The exit status is 1 where something is.
    """
    need_extra()
    from kinfolk_assistant.delivery.checks import doctor as check

    findings = check(read_settings(settings, None))
    for finding in findings:
        typer.echo(f"{'ok     ' if finding.ok else 'WRONG  '} {finding.what}: {finding.sentence}")
    return 0 if all(finding.ok for finding in findings) else 1
