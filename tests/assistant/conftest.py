"""Passwords that are quick to check: every test that signs in would wait for a slow one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher

from kinfolk_assistant.web import passwords


@pytest.fixture(autouse=True, scope="session")
def quick_passwords() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        # What nobody's password hashes to is kept; it may be of a slow hash that another test asked for.
        passwords._nobodys.cache_clear()
        yield
    passwords._nobodys.cache_clear()
