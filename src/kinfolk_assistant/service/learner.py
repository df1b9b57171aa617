"""Learning in a process of its own and of low priority: as a thread it would hold up the pages for a second at a time.

Run as ``python -m kinfolk_assistant.service.learner``, it reads the ledger's URL from standard input and learns once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from threading import Lock

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.service.retraining import is_due, retrain

_LEAVING = 10.0  # seconds that a process may take to leave the lease as it should be
_NICENESS = 10


class Learner:
    """Has a process learn anew from a ledger whenever there is something to learn.

    Parameters
    ----------
    ledger : Ledger
        What is learnt from, and where the models go.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def learn(self) -> None:
        """Learn where there is something to learn, and wait until that is done."""
        with self._ledger.read() as session:
            if not is_due(session, datetime.now(UTC)):
                return
        with self._lock:
            if self._stopped:
                return
            # Of a session of its own, because Ctrl-C is for the server, which then stops this in good order; -P, so
            # that nothing in the folder where the server runs is taken for a package.
            process = self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
        # Not on the command line, which everyone on this machine can read: it may hold a password.
        process.communicate(self._ledger.engine.url.render_as_string(hide_password=False))
        if process.returncode and not self._stopped:
            raise RuntimeError(f"the process that learns ended with status {process.returncode}")

    def stop(self) -> None:
        """End the process, if there is one, and let none begin."""
        with self._lock:
            self._stopped = True
            process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_LEAVING)
        except subprocess.TimeoutExpired:
            process.kill()


def _leave(signum: int, frame: object) -> None:
    # As an exception, so that the lease is given back on the way out.
    sys.exit(128 + signum)


def main() -> None:
    """Learn from the ledger that standard input names."""
    signal.signal(signal.SIGTERM, _leave)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    ledger = Ledger(sys.stdin.read())
    try:
        retrain(ledger, lambda: datetime.now(UTC))
    finally:
        ledger.close()


if __name__ == "__main__":
    main()
