"""Checks of parameters that are the same for everything that has parameters, so that they speak in one voice."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse a parameter that is not a whole number of at least ``least``.

    Examples
    --------
    >>> check_whole("n_draws", 0, 1)
    Traceback (most recent call last):
    ...
    ValueError: n_draws=0: a whole number of at least 1 is needed
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r}: a whole number of at least {least} is needed")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse a parameter that is not one of some words.

    Examples
    --------
    >>> check_choice("sharing", "some", ("joint", "none"))
    Traceback (most recent call last):
    ...
    ValueError: sharing='some': one of 'joint', 'none' is needed
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r}: one of {', '.join(map(repr, choices))} is needed")
