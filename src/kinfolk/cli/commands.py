"""The group of all commands: kinfolk's own, and those that other packages add.

A package adds a command by an entry point of the group ``kinfolk.commands`` that names a function or a ``typer.Typer``.
It is imported when its command is called and not before, so that a slow or broken one harms no other command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kinfolk.cli.errors import run, say

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "kinfolk.commands"


class Commands(TyperGroup):
    """Commands of which those of other packages are loaded late, and whose errors are one sentence."""

    @cached_property
    def added(self) -> dict[str, EntryPoint]:
        """What other packages add, by name; a name that kinfolk uses itself cannot be taken."""
        from importlib.metadata import entry_points

        try:
            found = entry_points(group=ENTRY_POINTS)
        except Exception as error:  # some other package's metadata is damaged: no reason to stop here
            say(f"commands of other packages are left out, since their list cannot be read ({error})")
            return {}
        return {entry.name: entry for entry in found if entry.name not in self.commands}

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands, kinfolk's own first."""
        return [*super().list_commands(ctx), *sorted(self.added)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One command; for another package's, a stand-in that tells where it comes from without loading it."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in self.added:
            return own
        package = getattr(self.added[cmd_name].dist, "name", "another package")
        return TyperCommand(cmd_name, help=f"(added by {package})")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, loaded if it is another package's."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name not in self.commands and name in self.added:
            command = _load(self.added[name])
        return name, command, rest

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; the exit status and what is said of errors are kinfolk's, not typer's."""

        def command() -> Any:
            return super(Commands, self).main(args, prog_name, complete_var, False, windows_expand_args, **extra)

        if not standalone_mode:
            return command()
        sys.exit(run(command))


class PanelledCommand(TyperCommand):
    """A command of many options, which its help lists under several headings, in plain text."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments first, then the options of no panel, then each panel's."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                of_its_kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or of_its_kind, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _load(entry: EntryPoint) -> Any:
    """Import another package's command."""
    try:
        added = entry.load()
        if not isinstance(added, typer.Typer):
            function, added = added, typer.Typer(rich_markup_mode=None)
            added.command(entry.name)(function)
        return typer.main.get_command(added)
    except Exception as error:
        say(f"the command {entry.name!r}, which is {entry.value}, cannot be loaded ({type(error).__name__}: {error})")
        raise typer.Exit(1) from None
