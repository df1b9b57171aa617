"""Passwords, kept as Argon2id hashes (RFC 9106); guessing one tells nothing of whether its user exists."""

from __future__ import annotations

from functools import cache
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

SHORTEST, LONGEST = 8, 1024

_hasher = PasswordHasher()
# Every hash takes tens of MiB and a core: many at once would be a way to bring the server down.
_at_once = BoundedSemaphore(2)


def hash_password(password: str) -> str:
    """Make the hash that is kept of a password.

    Examples
    --------
    >>> kept = hash_password("correct horse")
    >>> is_password(kept, "correct horse"), is_password(kept, "wrong horse"), is_password(None, "correct horse")
    (True, False, False)
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise ValueError(f"The password has {len(password)} characters; it needs {SHORTEST} to {LONGEST}.")
    with _at_once:
        return _hasher.hash(password)


def is_password(kept: str | None, password: str) -> bool:
    """Whether a password fits a hash; without a hash the same work is done for the answer no."""
    if len(password) > LONGEST:
        return False
    with _at_once:
        try:
            _hasher.verify(kept or _nobodys(), password)
        except (VerificationError, InvalidHashError):
            return False
    return kept is not None


def is_outdated(kept: str) -> bool:
    """Whether a hash was made with weaker parameters than are used now."""
    return _hasher.check_needs_rehash(kept)


@cache
def _nobodys() -> str:
    return _hasher.hash("the password of nobody")
