"""Clients that read a page again and again, each on a connection of its own; ``bench/assistant.py`` runs them.

Standard input gives one line of JSON: the port, the clients' cookies, the seconds from one page to the next. They read
until standard input ends; then standard output has a list of when each page was asked for, and how long it took.
"""

from __future__ import annotations

import json
import sys
from http.client import HTTPConnection
from threading import Event, Thread
from time import monotonic


def read(port: int, cookie: str, late: float, pause: float, stop: Event, pages: list[tuple[float, float]]) -> None:
    """Read the first page until told to stop, beginning ``late`` seconds from now."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    stop.wait(late)
    while not stop.is_set():
        asked = monotonic()
        connection.request("GET", "/", headers={"Cookie": cookie})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200 or b'class="request"' not in body:
            raise ValueError(f"the page has status {answer.status} and {len(body)} bytes, and shows no request")
        pages.append((asked, monotonic() - asked))
        stop.wait(max(0.0, asked + pause - monotonic()))
    connection.close()


def main() -> None:
    port, cookies, pause = json.loads(sys.stdin.readline())
    stop = Event()
    pages: list[tuple[float, float]] = []
    # Clients come one after the other, as people do not ask at the same moment.
    lates = [pause * place / len(cookies) for place in range(len(cookies))]
    arguments = [(port, cookie, late, pause, stop, pages) for cookie, late in zip(cookies, lates, strict=True)]
    threads = [Thread(target=read, args=one) for one in arguments]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    json.dump(sorted(pages), sys.stdout)


if __name__ == "__main__":
    main()
