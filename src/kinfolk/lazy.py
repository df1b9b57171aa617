"""Names of a folder that are imported when somebody asks for them (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package, given the module inside it that each name lives in.

    Examples
    --------
    >>> look_up, names = lazily("kinfolk.decisions", {"decide": "choosing", "Loss": "losses"})
    >>> look_up("Loss").__name__, names()
    ('Loss', ['Loss', 'decide'])
    """

    def look_up(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return look_up, lambda: sorted(homes)
