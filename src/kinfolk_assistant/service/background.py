"""What runs beside the pages: one thread that works through requests, one that learns."""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import sha256
from threading import Event, Thread

_log = logging.getLogger(__name__)


def log_name(user: str) -> str:
    """Give what a user is called in logs, which hold no addresses; ``admin users`` tells whose it is.

    Examples
    --------
    >>> log_name("ann@example.org")
    'user-438c4c7a'
    """
    return f"user-{sha256(user.encode()).hexdigest()[:8]}"


class Repeating(Thread):
    """A thread that does something again and again until it is stopped; a failure is logged, not the end."""

    def __init__(self, name: str, do: Callable[[], object], every: float) -> None:
        super().__init__(name=name, daemon=True)
        self._do = do
        self._every = every
        self._awake = Event()
        self._stopping = False

    def run(self) -> None:
        """Do it now, whenever woken, and after every pause."""
        while not self._stopping:
            self._awake.clear()
            try:
                self._do()
            except Exception:
                _log.exception("The thread %s failed and goes on", self.name)
            self._awake.wait(self._every)

    def wake(self) -> None:
        """Do it now rather than after the pause."""
        self._awake.set()

    def stop(self, timeout: float = 30.0) -> None:
        """End after what is being done, and wait for that."""
        self._stopping = True
        self._awake.set()
        self.join(timeout)
