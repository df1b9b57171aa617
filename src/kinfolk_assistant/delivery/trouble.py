"""What calendar servers do not do, in words: whatever the CalDAV library raises becomes one sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from caldav.lib import error as dav_error
from caldav.lib.http_sync import requests

# What the library has to say of a server's nonsense is raised here as one sentence; its tracebacks help nobody else.
logging.getLogger("caldav").setLevel(logging.CRITICAL)


class ServerTrouble(OSError):
    """What a calendar server did not do, in one sentence."""

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status
        """The status of the server's answer, 0 where there was none."""


@contextmanager
def in_words(where: str, username: str, timeout: float) -> Iterator[None]:
    """Turn what goes wrong with the server that is called ``where`` into `ServerTrouble`."""
    try:
        yield
    except ServerTrouble:
        raise
    except dav_error.DAVError as error:
        raise ServerTrouble(_words_of(error, where, username), error.status or 0) from error
    except requests.exceptions.Timeout as error:
        raise ServerTrouble(f"{where} did not answer within {timeout:g} seconds.") from error
    except requests.exceptions.SSLError as error:
        sentence = f"{where} has a certificate that is not trusted; check it, or name it as 'certificate'."
        raise ServerTrouble(sentence) from error
    except OSError as error:
        raise ServerTrouble(f"{where} cannot be reached; check its url and whether it runs.") from error
    except Exception as error:
        # What a library makes of nonsense is any kind of exception: it was not written with nonsense in mind.
        raise ServerTrouble(words_for(where, 0)) from error


def words_for(where: str, status: int) -> str:
    """Say what an answer of this status means to somebody who did not expect it."""
    if status >= 400:
        return f"{where} answered with the error {status}."
    return f"{where} answered something that is not CalDAV; check its url."


def names_of(rules: Sequence[str]) -> str:
    """Give the rules that a server says are broken (RFC 4918 16), without their namespaces."""
    return ", ".join(rule.rpartition("}")[2] for rule in rules if rule != "{DAV:}responsedescription")


def _words_of(error: dav_error.DAVError, where: str, username: str) -> str:
    if isinstance(error, dav_error.AuthorizationError):
        if error.status == 401:
            return f"{where} refused the user name {username!r} or its password."
        rules = f" ({names_of(error.preconditions)})" if error.preconditions else ""
        return f"{where} does not allow this to {username!r}{rules}."
    if isinstance(error, dav_error.RateLimitError):
        return f"{where} is busy and asks to be left alone for a while."
    if isinstance(error, dav_error.NotFoundError):
        return f"{where} has nothing at this address; check its url."
    return words_for(where, error.status or 0)
