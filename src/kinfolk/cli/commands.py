"""The program's frame: the group of all commands, options as dataclasses, and how a command ends.

A package adds a command by an entry point of the group ``kinfolk.commands`` that names a function or a ``typer.Typer``.
It is imported when its command is called and not before, so that a slow or broken one harms no other command.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from functools import cached_property, wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "kinfolk.commands"
BAD_INPUT = 2
INTERRUPTED = 130


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
        """One command; for another package's, a stand-in that tells what it is without loading it."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in self.added:
            return own
        return TyperCommand(cmd_name, help=_first_line(self.added[cmd_name]))

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
        sys.exit(_status(command))


class PanelledCommand(TyperCommand):
    """A command of many options, which its help lists under several headings, in plain text."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments first, then the options of no panel, then each panel's."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panel = getattr(parameter, "rich_help_panel", None) or "Options"
                argument = parameter.param_type_name == "argument"
                sections.setdefault("Arguments" if argument else panel, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def with_options(**groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take frozen dataclasses, each field of which is an argument or an option on the command line.

    Parameters
    ----------
    **groups : dataclass types
        By the names under which the command takes them. ``PANEL``, where a type has it, heads its options in the help.

    Returns
    -------
    callable
        A decorator. The decorated function has the signature that typer reads.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            command(
                **{
                    name: group(**{field.name: given[field.name] for field in fields(group)})
                    for name, group in groups.items()
                }
            )

        parameters = []
        for group in groups.values():
            kinds = get_type_hints(group, include_extras=True)
            # What a group has from another comes after its own.
            for field in sorted(fields(group), key=lambda field: field.name not in group.__annotations__):
                default = Parameter.empty if field.default is MISSING else field.default
                kind = kinds[field.name]
                about = kind.__metadata__[0]
                about.rich_help_panel = about.rich_help_panel or getattr(group, "PANEL", None)
                parameters.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind))
        called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return called

    return decorate


def _first_line(entry: EntryPoint) -> str:
    """What the module of another package's command says of itself, read from its source."""
    import ast
    from importlib.util import find_spec

    try:
        package, *inside = entry.module.split(".")  # found by hand, since asking for a part imports the whole
        place = Path(find_spec(package).origin or "")  # type: ignore[union-attr]
        if inside:
            place = place.parent.joinpath(*inside)
            place = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        said = ast.get_docstring(ast.parse(place.read_text("utf-8"))) or ""
    except Exception:  # another package's source may be anything
        said = ""
    return said.partition("\n")[0] or f"(a command of {getattr(entry.dist, 'name', 'another package')})"


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


def say(sentence: str) -> None:
    """Print a note or an error on standard error, as one line."""
    print(f"kinfolk: {' '.join(sentence.split())}", file=sys.stderr)


def told_by(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """What warnings say to a user, each once."""
    meant = [warning for warning in caught if not issubclass(warning.category, DeprecationWarning)]
    return list(dict.fromkeys(str(warning.message) for warning in meant))


def _status(command: Callable[[], Any]) -> int:
    """Run a command and give its exit status.

    Warnings are told once all has gone well. Input that cannot be used gives status 2 and one sentence on standard
    error; what is a fault of the program stays an exception. A reader that has closed the pipe, as ``head`` does, has
    got what it wanted.
    """
    _write_utf8()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcome = command()
        sys.stdout.flush()
        for warning in told_by(caught):
            say(warning)
    except (BrokenPipeError, SystemExit) as stop:
        if isinstance(stop, SystemExit) and not isinstance(stop.__context__, BrokenPipeError):
            raise
        _discard_output()
        return 0
    except (KeyboardInterrupt, typer.Abort):
        outcome = INTERRUPTED
    except Exception as error:
        sentence = _sentence(error)
        if sentence is None or os.environ.get("KINFOLK_TRACEBACK"):
            raise
        say(sentence)
        return BAD_INPUT
    if outcome == INTERRUPTED:
        say("interrupted before the work was done")
    return outcome if isinstance(outcome, int) else 0


def _sentence(error: Exception) -> str | None:
    """What was wrong with the input; None for errors that have another cause."""
    # Typer's own errors are known by this method: their classes have moved from version to version.
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        place = "kinfolk" if context is None else context.command_path
        return f"{error.format_message().rstrip('.')} (see {place} --help)"
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
        return f"{where}{error.strerror or error}"
    # An ImportError of our own says which optional package is missing; Python's own are of a subclass.
    if type(error) is ImportError:
        return str(error)
    return str(error) if isinstance(error, ValueError | TypeError) else None


def _write_utf8() -> None:
    """Make files and pipes UTF-8 wherever the program runs; a terminal keeps its encoding, but never fails."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError):  # a stream that stands in for the real one
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
            else:
                stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]


def _discard_output() -> None:
    """Let what is still buffered vanish, instead of failing once more when Python exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
