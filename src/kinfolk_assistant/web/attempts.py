"""How often a sign-in may be tried: a few times freely, then after delays that double."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from time import monotonic

FREE_TRIES = 5
FREE_TRIES_OF_A_CLIENT = 100  # a whole office may come from one address, and all of it at nine
LONGEST_WAIT = 900.0  # seconds
FORGOTTEN_AFTER = 3600.0  # seconds without a try
MOST_KEPT = 20_000
CLIENT = "client "
"""What a key begins with that is a client's address, and not that of an account."""


class Attempts:
    """Failed tries by key; a key is an address that was tried or a client that tried.

    A try counts as failed from its beginning, so that many at the same moment cannot slip past the count.

    Parameters
    ----------
    time : callable, optional
        Gives seconds that never go back.

    Examples
    --------
    >>> attempts = Attempts(time=lambda: 0.0)
    >>> [attempts.wait("someone", "a client") for _ in range(8)]
    [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, time: Callable[[], float] = monotonic) -> None:
        self._time = time
        self._lock = Lock()
        self._failed: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, *keys: str) -> float:
        """Seconds to wait before these keys may try; 0 means that this is now a try of theirs."""
        now = self._time()
        with self._lock:
            wait = max(self._left(key, now) for key in keys)
            if wait > 0:
                return wait
            for key in keys:
                count, last = self._failed.pop(key, (0, now))
                self._failed[key] = (1 if now - last > FORGOTTEN_AFTER else count + 1, now)
            while len(self._failed) > MOST_KEPT:
                self._failed.popitem(last=False)
        return 0.0

    def succeeded(self, *keys: str) -> None:
        """Forget the failures of these keys."""
        with self._lock:
            for key in keys:
                self._failed.pop(key, None)

    def _left(self, key: str, now: float) -> float:
        count, last = self._failed.get(key, (0, now))
        free = FREE_TRIES_OF_A_CLIENT if key.startswith(CLIENT) else FREE_TRIES
        if count < free or now - last > FORGOTTEN_AFTER:
            return 0.0
        return max(0.0, last + min(LONGEST_WAIT, 2.0 ** min(count - free, 20)) - now)
