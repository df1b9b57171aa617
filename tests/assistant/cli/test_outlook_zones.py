from __future__ import annotations

import json
from pathlib import Path

from tests.assistant.cli.conftest import worked
from tests.assistant.cli.files import ANN, calendar, event
from tests.cli.conftest import Run

# As Outlook describes the clocks of Berlin, by a name that the time zone database does not have.
BERLIN = "\r\n".join(
    [
        "BEGIN:VTIMEZONE",
        "TZID:Somewhere Standard Time",
        "BEGIN:STANDARD",
        "DTSTART:16011028T030000",
        "RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10",
        "TZOFFSETFROM:+0200",
        "TZOFFSETTO:+0100",
        "END:STANDARD",
        "BEGIN:DAYLIGHT",
        "DTSTART:16010325T020000",
        "RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3",
        "TZOFFSETFROM:+0100",
        "TZOFFSETTO:+0200",
        "END:DAYLIGHT",
        "END:VTIMEZONE",
    ]
)


def test_without_a_zone_of_the_user_the_one_that_the_invitation_describes_counts(run: Run) -> None:
    asked = event().replace("DTSTART:20240305T140000Z", "DTSTART;TZID=Somewhere Standard Time:20240705T133000")
    Path("outlook.ics").write_text(calendar(BERLIN, asked), newline="", encoding="utf-8")
    [found] = json.loads(worked(run, "decide", "outlook.ics", "--user", ANN, "--json"))["requests"]
    assert found["start"] == "2024-07-05T13:30:00+02:00"
    assert found["features"]["start_time"] == "afternoon"
