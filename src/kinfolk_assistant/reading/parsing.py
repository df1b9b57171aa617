"""icalendar's parser within bounds, and with time zones that one file cannot slip under another's."""

from __future__ import annotations

import codecs
import re
import threading
import warnings
from collections.abc import Iterable

from icalendar import Calendar, Component
from icalendar.error import GloballyUniqueTZIDGuessed
from icalendar.parser import Contentline, Parameters
from icalendar.parser.ical.calendar import CalendarIcalParser
from icalendar.timezone import tzp

from kinfolk_assistant.reading.bounds import INVITATION, MAX_DEPTH, Bounds, Refused
from kinfolk_assistant.reading.zones import Zones, is_affordable

_FOLD = re.compile(rb"\r?\n[ \t]")
_LISTS = ("RDATE", "EXDATE", "FREEBUSY", "CATEGORIES", "RRULE")
_CHARACTERS_A_LINE = 250
_LINES_A_VALUE = 8
_USUAL_PARAMETERS = 6
_MAX_ZONES = 10
# No text of iCalendar has these (RFC 5545 3.3.11), databases refuse some, and a lone CR may pass for a line end.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
# icalendar keeps the VTIMEZONEs it has met in one place for the whole process.
_ZONES = threading.RLock()


def as_text(data: bytes, what: str, bounds: Bounds = INVITATION) -> str:
    """Decode a calendar, whatever its line ends and byte order mark; broken UTF-8 becomes U+FFFD.

    Raises
    ------
    Refused
        Where it is larger than the bounds.
    """
    if len(data) > bounds.size:
        raise Refused(f"{what} has {len(data)} bytes; at most {bounds.size} are read.")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Old programs fold at 75 octets, through the middle of a character (RFC 5545 3.1).
        text = _FOLD.sub(b"", data).decode("utf-8-sig", "replace")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    return _CONTROLS.sub("", text)


def parse(text: str, what: str, bounds: Bounds = INVITATION) -> list[Component]:
    """Read the VCALENDARs of a text with icalendar.

    Raises
    ------
    Refused
        Where it is no iCalendar or beyond the bounds.
    """
    lines = text.count("\n") - text.count("\n ") - text.count("\n\t") + 1
    if lines > bounds.work:
        raise Refused(f"{what} has {lines} lines; at most {bounds.work} are read.")
    if "BEGIN:VCALENDAR" not in text.upper():
        raise Refused(f"{what} is not iCalendar: it has no BEGIN:VCALENDAR.")
    with _ZONES, warnings.catch_warnings():
        warnings.simplefilter("ignore", GloballyUniqueTZIDGuessed)
        tzp.use(Zones())
        try:
            found = Reader(text, what, bounds).parse()
        except Refused:
            raise
        except Exception as error:  # whatever a stranger's text sets off in the parser is a reason to refuse it
            raise Refused(f"{what} cannot be read as iCalendar ({_short(error)}).") from error
        finally:
            tzp.use_zoneinfo()
    calendars = [one for one in found if one.name == "VCALENDAR"]
    if not calendars:
        raise Refused(f"{what} is not iCalendar: it has no whole VCALENDAR.")
    return calendars


def written(calendars: Iterable[Component], what: str) -> str:
    r"""Write VCALENDARs that were read, changed or not.

    Raises
    ------
    Refused
        Where icalendar has read what it cannot write.

    Examples
    --------
    >>> lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "END:VCALENDAR", ""]
    >>> written(parse("\r\n".join(lines), "the file"), "the file").splitlines()
    ['BEGIN:VCALENDAR', 'VERSION:2.0', 'END:VCALENDAR']
    """
    try:
        return "".join(bytes(calendar.to_ical()).decode("utf-8", "replace") for calendar in calendars)
    except Exception as error:  # a line break within a rule, say, is read and kept, and an AssertionError here
        raise Refused(f"{what} cannot be written as iCalendar again ({_short(error)}).") from error


class Reader(CalendarIcalParser):
    """icalendar's own parser, which stops at the bounds.

    The work is one for each content line and for each 250 characters of it, eight for each value of a list, and some
    for parameters in great number. A property that is not as it should be is kept as it is: where it is used, it is
    found out whether that matters.
    """

    def __init__(self, text: str, what: str, bounds: Bounds) -> None:
        super().__init__(text, Calendar._get_component_factory(), Calendar.types_factory)
        self._what, self._bounds = what, bounds

    def initialize_parsing(self) -> None:
        """Unfold the lines and count what they will cost."""
        self._n_zones = 0
        super().initialize_parsing()  # type: ignore[no-untyped-call]
        work = 0
        for line in self._content_lines:
            work += 1 + len(line) // _CHARACTERS_A_LINE + _work_of_parameters(line)
            if line[:10].upper().startswith(_LISTS):
                work += _LINES_A_VALUE * line.count(",")
        if work > self._bounds.work:
            raise Refused(
                f"{self._what} is too long: its lines and values count as {work} lines, at most {self._bounds.work} "
                "are read."
            )

    def handle_begin_component(self, vals: str) -> None:
        """Stop at components nested too deeply."""
        if len(self._stack) >= MAX_DEPTH:
            raise Refused(f"{self._what} nests components more than {MAX_DEPTH} deep.")
        super().handle_begin_component(vals)
        self._stack[-1].ignore_exceptions = True  # type: ignore[misc]

    def parse_and_add_property(
        self, name: str, params: Parameters, val: str, tzid: str | None, line: Contentline
    ) -> None:
        """Read a property; a TZID that is a path takes zoneinfo to the file system, where anything may happen."""
        try:
            super().parse_and_add_property(name, params, val, tzid, line)
        except OSError as error:
            self.handle_property_parse_error(error, name, params, val, line)

    def handle_end_component(self, vals: str) -> None:
        """Look at a time zone before icalendar makes one of it; one that cannot be made stays unknown."""
        zone = self.component
        if vals.upper() != "VTIMEZONE" or zone is None:
            super().handle_end_component(vals)
            return
        self._n_zones += 1
        # Only by this name does the parser know that a time zone ends here.
        name = vals if self._n_zones <= _MAX_ZONES and is_affordable(zone) else ""
        depth = len(self._stack)
        try:
            super().handle_end_component(name)
        except Exception:  # a stranger's description of a time zone may fail in many ways
            if len(self._stack) == depth:
                raise


def _work_of_parameters(line: Contentline) -> int:
    """How many lines' work a line's parameters are, beyond those that people usually have."""
    end = line.find(":")
    if '"' in line[:end]:
        end = line.value_separator_index()
    head = line[:end] if end >= 0 else line
    return max(head.count(";") - _USUAL_PARAMETERS, 0) // 2 + head.count(",") // 8


def _short(error: Exception) -> str:
    if not isinstance(error, ValueError):
        return type(error).__name__
    words = "".join(letter if letter.isprintable() else " " for letter in str(error)[:1000])
    words = " ".join(words.split())
    return (words[:120] + "…" if len(words) > 120 else words).rstrip(".")
