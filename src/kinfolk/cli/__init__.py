"""The command line, a file for each command; their functions import what they work with when they run.

- ``app``: all commands put together; ``commands``: their group, with those that other packages add, options as
  dataclasses, and how a command ends; ``options``: arguments and options that several commands share
- ``tables``: tables in, tables and JSON out
- ``fit`` and the table of its models; ``fit_naive_bayes``, ``fit_networks``: each family with its options
- ``evaluate``: models compared on rows held out
- ``predict``, ``decide``: rows answered by a saved model
- ``inspection``: what a saved model found; ``description``, ``network_structures``: as plain data and in words
- ``bif``, ``sample``: networks; ``music`` and its page, ``music_page``: sound files
- ``demo``, ``reproduce``: the experiments; ``warm_up``: kernels compiled beforehand, by ``small_fits``
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run ``kinfolk`` with the arguments of this process, and exit."""
    try:
        from kinfolk.cli.app import app

        app(prog_name="kinfolk")
    except KeyboardInterrupt:  # before the program is there that would tell
        raise SystemExit(130) from None
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        raise SystemExit("kinfolk: installed without its dependencies, kinfolk.load answers in Python alone") from None
