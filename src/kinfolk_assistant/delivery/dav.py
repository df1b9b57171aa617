"""A connection to a CalDAV server (RFC 4791): requests are bounded in time and size, and trouble is one sentence."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self
from urllib.parse import quote, urlsplit

from caldav.collection import Principal
from caldav.davclient import DAVClient
from caldav.elements import cdav, dav
from caldav.elements.base import BaseElement
from caldav.lib import error as dav_error
from caldav.response import DAVResponse

from kinfolk_assistant.delivery.trouble import ServerTrouble, in_words, names_of, words_for

MAX_OBJECT = 1 << 20
"""Calendar objects of more octets than this are left alone."""

MAX_ANSWER = 32 << 20
"""No answer of a server may have more octets than this."""

_PER_REQUEST = 100
_STORED = (200, 201, 204)
_ICALENDAR = "text/calendar; charset=utf-8"


class Member(NamedTuple):
    """Something in a collection: its path, its version, its octets (0 where not told) and when it was last changed."""

    href: str
    etag: str
    size: int = 0
    modified: datetime | None = None


class Content(NamedTuple):
    """A calendar object as it is on the server now."""

    href: str
    etag: str
    text: str


class _ContentLength(BaseElement):
    tag: ClassVar[str | None] = "{DAV:}getcontentlength"


class _LastModified(BaseElement):
    tag: ClassVar[str | None] = "{DAV:}getlastmodified"


class _DefaultCalendar(BaseElement):
    tag: ClassVar[str | None] = "{urn:ietf:params:xml:ns:caldav}schedule-default-calendar-URL"


class Connection:
    """One visit to a server; use it in a ``with`` statement.

    Parameters
    ----------
    url : str
        Where the server's CalDAV begins.
    username, password : str
        Who is asking; sent only when the server asks for them.
    timeout : float
        Seconds to wait for the server to say something.
    patience : float
        Seconds that the whole visit may take.
    certificate : str, optional
        A file with the certificates to trust, where the system's are not those.
    """

    def __init__(
        self,
        url: str,
        username: str,
        password: str,
        *,
        timeout: float = 10.0,
        patience: float = 120.0,
        certificate: str | None = None,
    ) -> None:
        self.where = f"The calendar server {urlsplit(url).netloc}"
        self.username = username
        self._timeout = timeout
        self._until = time.monotonic() + patience
        with self._in_words():
            self._client = DAVClient(
                url=url,
                username=username,
                password=password,
                ssl_verify_cert=certificate or True,
                enable_rfc6764=False,
            )
            # Declared to be whole seconds, but handed on as it is.
            self._client.timeout = timeout  # type: ignore[assignment]
            self._client.session.stream = True
            self._client.session.hooks["response"].append(self._read_bounded)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def principal(self) -> str:
        """Where the server keeps what it knows of the user."""
        with self._in_words():
            return str(self._principal().url)

    def addresses(self) -> list[str]:
        """The user's own addresses as the server knows them (RFC 6638 2.4.1), lower case and without ``mailto:``."""
        with self._in_words():
            try:
                found: Any = self._principal().calendar_user_address_set()
            except dav_error.NotFoundError:
                return []
        plain = [address.strip().lower().removeprefix("mailto:") for address in found if address]
        return [address for address in plain if "@" in address]

    def inbox(self) -> str | None:
        """Where invitations arrive (RFC 6638 2.2); None where the server has no such place."""
        with self._in_words():
            found: Any = self._principal().get_property(cdav.ScheduleInboxURL())
        return f"{urlsplit(str(found)).path.rstrip('/')}/" if found else None

    def calendars(self) -> list[str]:
        """Where the user's calendars are."""
        with self._in_words():
            found: Any = self._principal().get_calendars()
            return [calendar.url.path for calendar in found]

    def default_calendar(self) -> str:
        """Where new meetings go: the calendar that the inbox names for it (RFC 6638 9.2), else the first."""
        inbox, calendars = self.inbox(), self.calendars()
        if not calendars:
            raise ServerTrouble(f"{self.where} has no calendar of {self.username!r}; make one there.")
        wanted = _of(dav.Propfind(), _of(dav.Prop(), _DefaultCalendar()))
        with self._in_words():
            response = self._client.propfind(self._url(inbox), str(wanted), depth=0) if inbox else None
        results: list[Any] = list((response and response.results) or [])
        told = [found.properties.get(_DefaultCalendar.tag) for found in results]
        named = {f"{urlsplit(href).path.rstrip('/')}/" for href in told if isinstance(href, str)}
        return next((calendar for calendar in calendars if calendar in named), calendars[0])

    def schedules(self) -> bool:
        """Whether the server itself tells organisers what is answered (RFC 6638 3)."""
        features = self._ask("OPTIONS", urlsplit(self.principal()).path, expected=(200, 204)).headers.get("DAV") or ""
        return "calendar-auto-schedule" in [feature.strip() for feature in features.split(",")]

    def members(self, collection: str) -> list[Member]:
        """What is in a collection."""
        wanted = _of(dav.Propfind(), _of(dav.Prop(), dav.GetEtag(), _ContentLength(), _LastModified()))
        with self._in_words():
            response = self._client.propfind(self._url(collection), str(wanted), depth=1)
        self._check(response, (200, 207))
        itself = collection.rstrip("/")
        return [_member(found) for found in response.results or [] if found.href.rstrip("/") != itself]

    def contents(self, collection: str, hrefs: Sequence[str]) -> Iterator[Content]:
        """Calendar objects of one collection, a hundred with each request."""
        for first in range(0, len(hrefs), _PER_REQUEST):
            wanted = _of(dav.Prop(), dav.GetEtag(), cdav.CalendarData())
            missing = set(hrefs[first : first + _PER_REQUEST])
            which = [dav.Href(value=quote(href)) for href in sorted(missing)]
            for content in self._report(collection, _of(cdav.CalendarMultiGet(), wanted, *which)):
                missing.discard(content.href)
                yield content
            # Servers differ in how they read names with unusual letters here, but not in a plain GET.
            yield from filter(None, map(self.get, sorted(missing)))

    def find(self, collection: str, uid: str) -> list[str]:
        """Paths of the events in a calendar whose UID holds these characters."""
        events = _of(cdav.CompFilter("VEVENT"), _of(cdav.PropFilter("UID"), cdav.TextMatch(uid)))
        condition = _of(cdav.Filter(), _of(cdav.CompFilter("VCALENDAR"), events))
        query = _of(cdav.CalendarQuery(), _of(dav.Prop(), dav.GetEtag()), condition)
        return [found.href for found in self._report(collection, query)]

    def get(self, href: str) -> Content | None:
        """One calendar object; None where it is gone."""
        response = self._ask("GET", href, expected=(200, 404))
        if response.status == 404:
            return None
        try:
            text = response.raw
        except UnicodeDecodeError:
            text = ""  # iCalendar is UTF-8 (RFC 5545 3.1.4): what is not is as good as nothing
        return Content(href, response.headers.get("ETag") or "", text)

    def put(self, href: str, text: str, *, etag: str | None) -> bool:
        """Store a calendar object in the place of that with this ``etag`` (None: of nothing); False if that changed."""
        if etag == "":
            raise ServerTrouble(f"{self.where} gives its objects no etags, so they cannot be changed safely.")
        condition = {"If-None-Match": "*"} if etag is None else {"If-Match": etag}
        response = self._ask("PUT", href, text, {"Content-Type": _ICALENDAR, **condition}, (*_STORED, 412))
        if response.status == 412 and (rules := dav_error.parse_preconditions(response.raw)):
            raise ServerTrouble(f"{self.where} refused to store this ({names_of(rules)}).", 412)
        return response.status != 412

    def delete(self, href: str) -> None:
        """Remove something; it may be gone already."""
        self._ask("DELETE", href, expected=(*_STORED, 404, 410))

    def _principal(self) -> Principal:
        found: Principal = self._client.get_principal()
        return found

    def _report(self, collection: str, query: BaseElement) -> Iterator[Content]:
        with self._in_words():
            response = self._client.report(self._url(collection), str(query), depth=1)
        self._check(response, (200, 207))
        with self._in_words():
            found = response.parse_calendar_query()
        for one in found:
            if one.status == 200:
                yield Content(one.href, one.etag or "", one.calendar_data or "")

    def _ask(
        self,
        method: str,
        href: str,
        body: str = "",
        headers: Mapping[str, str] | None = None,
        expected: tuple[int, ...] = (),
    ) -> DAVResponse:
        with self._in_words():
            response: DAVResponse = self._client.request(self._url(href), method, body, headers or {})
        self._check(response, expected)
        return response

    def _check(self, response: DAVResponse, expected: tuple[int, ...]) -> None:
        if response.status not in expected:
            raise ServerTrouble(words_for(self.where, response.status), response.status)

    def _url(self, href: str) -> str:
        return str(self._client.url.join(quote(href)))

    def _read_bounded(self, response: Any, *_: Any, **__: Any) -> None:
        """Read an answer in small parts: a server that sends for ever, or slower than a snail, is left."""
        parts, octets = [], 0
        for part in response.iter_content(65536):
            parts.append(part)
            octets += len(part)
            if octets > MAX_ANSWER:
                raise ServerTrouble(f"{self.where} sent more than {MAX_ANSWER >> 20} MiB at once.")
            self._hurry()
        response._content = b"".join(parts)

    def _hurry(self) -> None:
        if time.monotonic() > self._until:
            raise ServerTrouble(f"{self.where} is too slow: it was left before it had done what was asked.")

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        self._hurry()
        with in_words(self.where, self.username, self._timeout):
            yield


def _of(parent: BaseElement, *children: BaseElement) -> BaseElement:
    """An XML element with what it holds."""
    return parent.append(children)


def _member(found: Any) -> Member:
    told = found.properties
    size = str(told.get(_ContentLength.tag) or "")
    return Member(
        found.href,
        str(told.get(dav.GetEtag.tag) or ""),
        int(size) if size.isascii() and size.isdigit() else 0,
        _moment(str(told.get(_LastModified.tag) or "")),
    )


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
