"""Awkward iCalendar files, made anew for each test: what a reader may meet, and what it must not choke on."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

TIMES = ("DTSTART:20260701T080000Z", "DTEND:20260701T090000Z")
PEOPLE = (
    "ORGANIZER;CN=Bob:mailto:bob@example.org",
    "ATTENDEE;CN=Ann;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:ann@example.org",
)
CUSTOM_ZONE = (
    "BEGIN:VTIMEZONE",
    "TZID:Customized Time Zone",
    "BEGIN:STANDARD",
    "DTSTART:16010101T030000",
    "TZOFFSETFROM:+0430",
    "TZOFFSETTO:+0330",
    "RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10",
    "END:STANDARD",
    "BEGIN:DAYLIGHT",
    "DTSTART:16010101T020000",
    "TZOFFSETFROM:+0330",
    "TZOFFSETTO:+0430",
    "RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3",
    "END:DAYLIGHT",
    "END:VTIMEZONE",
)


def event(*lines: str, uid: str = "1@example.org") -> list[str]:
    """A VEVENT of these lines, between its frame and its people."""
    return ["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20260601T120000Z", *lines, *PEOPLE, "END:VEVENT"]


def calendar(*lines: str, method: str = "REQUEST", end: str = "\r\n") -> bytes:
    """A VCALENDAR of these lines."""
    head = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//example//example//EN"]
    return end.join([*head, *([f"METHOD:{method}"] if method else []), *lines, "END:VCALENDAR", ""]).encode()


def one(*lines: str, method: str = "REQUEST", end: str = "\r\n") -> bytes:
    """A VCALENDAR of one VEVENT of these lines."""
    return calendar(*event(*lines), method=method, end=end)


def zoned(zone: str, *before: str, after: tuple[str, ...] = ()) -> bytes:
    """A meeting from 10 to 11 in July by the clock of a zone."""
    times = (f"DTSTART;TZID={zone}:20260701T100000", f"DTEND;TZID={zone}:20260701T110000")
    return calendar(*before, *event(*times), *after)


def named(tzid: str) -> tuple[str, ...]:
    """The custom zone under another name."""
    return tuple(line.replace("Customized Time Zone", tzid) for line in CUSTOM_ZONE)


def with_zone_rule(rule: str, start: str = "16010101T000000") -> bytes:
    """A meeting in a zone whose one part follows a rule."""
    lines = ("BEGIN:VTIMEZONE", "TZID:Odd", "BEGIN:STANDARD", f"DTSTART:{start}", "TZOFFSETFROM:+0100")
    return zoned("Odd", *lines, "TZOFFSETTO:+0200", f"RRULE:{rule}", "END:STANDARD", "END:VTIMEZONE")


HANDLED: dict[str, Callable[[], bytes]] = {
    "UTC": lambda: one(*TIMES),
    "IANA zone": lambda: zoned("Europe/Berlin"),
    "IANA zone, described otherwise": lambda: zoned("Europe/Berlin", *named("Europe/Berlin")),
    "Windows zone": lambda: zoned("W. Europe Standard Time"),
    "quoted Windows zone": lambda: zoned('"Eastern Standard Time"'),
    "zone with a vendor's prefix": lambda: zoned("/freeassociation.sourceforge.net/Europe/Berlin"),
    "custom zone": lambda: zoned("Customized Time Zone", *CUSTOM_ZONE),
    "custom zone described last": lambda: zoned("Customized Time Zone", after=CUSTOM_ZONE),
    "floating": lambda: one("DTSTART:20260701T100000", "DTEND:20260701T110000"),
    "all day": lambda: one("DTSTART;VALUE=DATE:20260701", "DTEND;VALUE=DATE:20260703"),
    "all day without end": lambda: one("DTSTART;VALUE=DATE:20260701"),
    "all day that ends when it starts": lambda: one("DTSTART;VALUE=DATE:20260701", "DTEND;VALUE=DATE:20260701"),
    "no end": lambda: one("DTSTART:20260701T080000Z"),
    "duration": lambda: one("DTSTART:20260701T080000Z", "DURATION:PT90M"),
    "end and duration": lambda: one(*TIMES, "DURATION:PT90M"),
    "two zones": lambda: one(
        "DTSTART;TZID=Europe/Berlin:20260701T100000", "DTEND;TZID=America/New_York:20260701T050000"
    ),
    "LF": lambda: one(*TIMES, end="\n"),
    "CR": lambda: one(*TIMES, end="\r"),
    "byte order mark": lambda: codecs.BOM_UTF8 + one(*TIMES),
    "UTF-16": lambda: one(*TIMES).decode().encode("utf-16"),
    "folded": lambda: one(*TIMES, "SUMMARY:one\r\n  two"),
    "folded by tab": lambda: one(*TIMES, "SUMMARY:one\r\n\t two"),
    "folded within a character": lambda: one(*TIMES, "SUMMARY:Zürich").replace(b"\xc3\xbc", b"\xc3\r\n \xbc"),
    "broken UTF-8": lambda: one(*TIMES, "SUMMARY:Zürich").replace(b"\xc3\xbc", b"\xfc"),
    "NUL and control characters": lambda: one(*TIMES, "SUMMARY:one\x00\x07\x1btwo"),
    "lower case": lambda: re.sub(rb"\d+t\d+z", lambda time: time[0].upper(), one(*TIMES).lower()),
    "blank lines": lambda: one(*TIMES).replace(b"\r\n", b"\r\n\r\n"),
    "no line end at the end": lambda: one(*TIMES).rstrip(),
    "no organiser": lambda: one(*TIMES).replace(b"ORGANIZER;CN=Bob:mailto:bob@example.org\r\n", b""),
    "broken alarm": lambda: calendar(*event(*TIMES)[:-1], "BEGIN:VALARM", "TRIGGER:soon", "END:VALARM", "END:VEVENT"),
    "broken line": lambda: one(*TIMES, "this is no content line"),
    "broken numbers": lambda: one(*TIMES, "SEQUENCE:many", "PRIORITY:99999999999999999999"),
    "unknown components and properties": lambda: calendar(
        "BEGIN:X-A", "X-B;X-C=1:2", "END:X-A", *event(*TIMES, "X-D:é")
    ),
    "a VTODO beside": lambda: calendar("BEGIN:VTODO", "UID:2", "DUE:never", "END:VTODO", *event(*TIMES)),
    "properties twice": lambda: one(*TIMES, *TIMES, "SUMMARY:a", "SUMMARY:b", "LOCATION:x", "LOCATION:y"),
    "method of a store": lambda: one(*TIMES, method=""),
    "daily without end": lambda: one(*TIMES, "RRULE:FREQ=DAILY"),
    "until the year 9999": lambda: one(*TIMES, "RRULE:FREQ=WEEKLY;UNTIL=99991231T235959Z"),
    "a thousand million times": lambda: one(*TIMES, "RRULE:FREQ=DAILY;COUNT=1000000000"),
    "every leap day": lambda: one("DTSTART:20240229T080000Z", "RRULE:FREQ=YEARLY"),
    "until a date": lambda: one("DTSTART;TZID=Europe/Berlin:20260701T100000", "RRULE:FREQ=DAILY;UNTIL=20260705"),
    "further dates": lambda: one(*TIMES, "RDATE:20260708T080000Z,20260709T080000Z"),
    "a further period": lambda: one(*TIMES, "RDATE;VALUE=PERIOD:20260708T080000Z/PT2H"),
    "exceptions of another kind": lambda: one(*TIMES, "RRULE:FREQ=DAILY;COUNT=5", "EXDATE;VALUE=DATE:20260702"),
    "one occurrence alone": lambda: one(*TIMES, "RECURRENCE-ID:20260701T070000Z"),
    "10,000 attendees": lambda: one(
        *TIMES, *(f"ATTENDEE;CN=P {i};RSVP=TRUE:mailto:p{i}@example.org" for i in range(10_000))
    ),
    "a description of 2 MB": lambda: one(*TIMES, "DESCRIPTION:" + "a\\, " * 500_000),
    "an attachment of 3 MB": lambda: one(*TIMES, "ATTACH;ENCODING=BASE64;VALUE=BINARY:" + "QUJD" * 750_000),
    "1,000 changed occurrences": lambda: calendar(
        *event(*TIMES, "RRULE:FREQ=DAILY"),
        *(
            line
            for day in range(1000)
            for line in event(
                *TIMES, f"RECURRENCE-ID:{2027 + day // 300}{1 + day // 28 % 12:02}{1 + day % 28:02}T080000Z"
            )
        ),
    ),
    "zone that never ends to change, beside": lambda: with_zone_rule("FREQ=SECONDLY").replace(
        b"TZID=Odd", b"TZID=Europe/Rome"
    ),
}

REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "no BEGIN:VCALENDAR"),
    "prose": (lambda: b"Dear all,\r\nlet us meet.\r\n", "no BEGIN:VCALENDAR"),
    "a picture": (lambda: bytes(range(256)) * 4000, "no BEGIN:VCALENDAR"),
    "cut short": (lambda: one(*TIMES)[:200], "no whole VCALENDAR"),
    "ends without begin": (lambda: b"END:VEVENT\r\n" + one(*TIMES), "cannot be read"),
    "no event": (lambda: calendar(), "holds no event"),
    "tasks only": (lambda: calendar("BEGIN:VTODO", "UID:1", "END:VTODO"), "holds no event"),
    "unknown method": (lambda: one(*TIMES, method="INVITE"), "'INVITE'"),
    "no UID": (lambda: one(*TIMES).replace(b"UID:1@example.org\r\n", b""), "UID is missing"),
    "endless UID": (lambda: one(*TIMES).replace(b"UID:1@", b"UID:" + b"1" * 5000 + b"@"), "UID is longer"),
    "no DTSTART": (lambda: one(), "no DTSTART"),
    "impossible DTSTART": (lambda: one("DTSTART:20260231T080000Z"), "DTSTART that is no date"),
    "DTSTART that is a duration": (lambda: one("DTSTART;VALUE=DURATION:PT1H"), "DTSTART that is no date"),
    "ends before it starts": (
        lambda: one("DTSTART:20260701T080000Z", "DTEND:20260701T070000Z"),
        "must end at or after",
    ),
    "negative duration": (lambda: one("DTSTART:20260701T080000Z", "DURATION:-PT1H"), "must end at or after"),
    "endless duration": (lambda: one("DTSTART:20260701T080000Z", "DURATION:P999999999D"), "DURATION that does not go"),
    "hours after a day": (lambda: one("DTSTART;VALUE=DATE:20260701", "DURATION:PT1H"), "DURATION that does not go"),
    "a time that ends on a day": (lambda: one("DTSTART:20260701T080000Z", "DTEND;VALUE=DATE:20260702"), "does not go"),
    "half floating": (lambda: one("DTSTART:20260701T080000Z", "DTEND:20260701T090000"), "does not go"),
    "the year 1": (lambda: one("DTSTART:00010101T000000Z"), "outside the years"),
    "the year 9999": (lambda: one("DTSTART:99991231T235959Z"), "outside the years"),
    "unknown zone": (lambda: zoned("Middle Earth/Shire"), "'Middle Earth/Shire'"),
    "a folder as zone": (lambda: zoned("Europe"), "DTSTART that is no date"),
    "a path as zone": (lambda: zoned("../../../etc/passwd"), "passwd"),
    "zone described by a secondly rule": (lambda: with_zone_rule("FREQ=SECONDLY"), "'Odd'"),
    "zone of daily changes": (lambda: with_zone_rule("FREQ=DAILY"), "'Odd'"),
    "zone of weekly changes": (lambda: with_zone_rule("FREQ=YEARLY;BYDAY=SU"), "'Odd'"),
    "zone of no change": (lambda: with_zone_rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"), "'Odd'"),
    "zone that stands still": (lambda: with_zone_rule("FREQ=YEARLY;INTERVAL=0"), "'Odd'"),
    "zone of many parts": (
        lambda: zoned("Customized Time Zone", *CUSTOM_ZONE[:2], *CUSTOM_ZONE[2:-1] * 100, CUSTOM_ZONE[-1]),
        "'Customized Time Zone'",
    ),
    "every second": (lambda: one(*TIMES, "RRULE:FREQ=SECONDLY"), "'SECONDLY'"),
    "every minute of Februaries 30": (lambda: one(*TIMES, "RRULE:FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30"), "'MINUTELY'"),
    "every hour": (lambda: one(*TIMES, "RRULE:FREQ=HOURLY"), "'HOURLY'"),
    "never": (lambda: one(*TIMES, "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"), "no day ever meets"),
    "never by place": (lambda: one(*TIMES, "RRULE:FREQ=WEEKLY;BYDAY=MO;BYSETPOS=9"), "no day ever meets"),
    "daily by place": (lambda: one(*TIMES, "RRULE:FREQ=DAILY;BYSETPOS=5"), "BYSETPOS"),
    "interval 0": (lambda: one(*TIMES, "RRULE:FREQ=DAILY;INTERVAL=0"), "interval"),
    "interval of a thousand million": (lambda: one(*TIMES, "RRULE:FREQ=DAILY;INTERVAL=1000000000"), "interval"),
    "each second of each day": (
        lambda: one(*TIMES, "RRULE:FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=1,2,3;BYSECOND=1,2,3"),
        "more than 4 times a day",
    ),
    "rule of 1,000 values": (
        lambda: one(*TIMES, "RRULE:FREQ=YEARLY;BYYEARDAY=" + "1," * 999 + "1"),
        "more than 400 values",
    ),
    "rule without frequency": (lambda: one(*TIMES, "RRULE:COUNT=3"), "must repeat daily"),
    "rule of nonsense": (lambda: one(*TIMES, "RRULE:FREQ=FORTNIGHTLY"), "recurrence rule"),
    "rule of unknown parts": (lambda: one(*TIMES, "RRULE:FREQ=DAILY;BYMOON=1"), "cannot be followed"),
    "two rules": (lambda: one(*TIMES, "RRULE:FREQ=DAILY", "RRULE:FREQ=WEEKLY"), "must have one recurrence rule"),
    "daily since 1900": (lambda: one("DTSTART:19000101T080000Z", "RRULE:FREQ=DAILY"), "since 1900"),
    "broken exceptions": (lambda: one(*TIMES, "RRULE:FREQ=DAILY", "EXDATE:tomorrow"), "cannot be followed"),
    "broken RECURRENCE-ID": (lambda: one(*TIMES, "RECURRENCE-ID:tomorrow"), "RECURRENCE-ID that is no date"),
    "200,000 attendees": (lambda: one(*TIMES, *["ATTENDEE:mailto:p@example.org"] * 200_000), "lines; at most"),
    "a million properties": (lambda: one(*TIMES, *["X:1"] * 1_000_000), "lines; at most"),
    "a line of 9 MB": (lambda: one(*TIMES, "DESCRIPTION:" + "x" * 9_000_000), "too long"),
    "a line of 9 MB, folded": (lambda: one(*TIMES, "DESCRIPTION:" + "\r\n ".join(["x" * 70] * 125_000)), "too long"),
    "five million blank lines": (lambda: one(*TIMES) + b"\n" * 5_000_000, "lines; at most"),
    "100,000 further dates": (lambda: one(*TIMES, "RDATE:" + ",".join(["20260708T080000Z"] * 100_000)), "too long"),
    "100,000 exceptions": (lambda: one(*TIMES, "EXDATE:" + ",".join(["20260708T080000Z"] * 100_000)), "too long"),
    "300,000 categories": (lambda: one(*TIMES, "CATEGORIES:" + "a," * 300_000), "too long"),
    "200,000 periods": (
        lambda: calendar("BEGIN:VFREEBUSY", "FREEBUSY:" + "a," * 200_000, "END:VFREEBUSY", *event(*TIMES)),
        "too long",
    ),
    "5,000 events": (
        lambda: calendar(*(line for i in range(5000) for line in event(*TIMES, uid=str(i)))),
        "lines; at most",
    ),
    "100 UIDs": (lambda: calendar(*(line for i in range(100) for line in event(*TIMES, uid=str(i)))), "of 100 UIDs"),
    "nested deeply": (lambda: calendar(*["BEGIN:VEVENT"] * 5000, *["END:VEVENT"] * 5000), "more than 8 deep"),
    "nested deeply and left open": (lambda: calendar(*["BEGIN:X"] * 10_000), "more than 8 deep"),
    "nested calendars": (lambda: b"BEGIN:VCALENDAR\r\n" * 500_000, "lines; at most"),
    "50 MB": (lambda: one(*TIMES, "DESCRIPTION:" + "x" * 50_000_000), "at most 10485760 are read"),
}


EVERYTHING: dict[str, Callable[[], bytes]] = {**HANDLED, **{name: made for name, (made, _) in REFUSED.items()}}
"""All files, whatever becomes of them."""
