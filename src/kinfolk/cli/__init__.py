"""The command line: fit, predict, decide and inspect tables from a shell."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run ``kinfolk`` with the arguments of this process, and exit."""
    from kinfolk.cli.app import app

    app(prog_name="kinfolk")
