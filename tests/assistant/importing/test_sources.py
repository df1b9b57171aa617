from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kinfolk_assistant.importing.sources import read_history
from kinfolk_assistant.reading.mail import MailedObject
from tests.assistant.importing.calendars import event, text

MAIL = (
    "From: boss@sri.example\r\nTo: una@sri.example\r\nMessage-ID: <{}@sri.example>\r\n"
    "Date: Thu, 30 Apr 2026 16:05:00 +0000\r\nMIME-Version: 1.0\r\n"
    "Content-Type: text/calendar; method=REQUEST; charset=utf-8\r\n\r\n{}"
)


def mail(uid: str) -> str:
    return MAIL.format(uid, text(event(uid, "20260504T170000Z", DTSTAMP="20260430T160000Z"), method="REQUEST"))


def test_a_folder_gives_calendars_mails_and_mailboxes_and_says_what_it_passed_over(tmp_path):
    calendar = text(
        event("a", "20260504T170000Z"), event("b", "20260505T170000Z"), "BEGIN:VEVENT\r\nUID:c\r\nEND:VEVENT"
    )
    (tmp_path / "1.ics").write_bytes(calendar.encode())
    (tmp_path / "2.ics").write_bytes(b"nothing")
    (tmp_path / "3.txt").write_bytes(calendar.encode())
    deep = tmp_path / "mails"
    deep.mkdir()
    (deep / "4.eml").write_bytes(mail("d").encode())
    (deep / "5.eml").write_bytes(b"Subject: no calendar\r\n\r\nHello")
    box = "".join(f"From boss@sri.example Thu Apr 30 16:05:00 2026\n{mail(uid)}\n" for uid in "ef").replace(
        "\r\n", "\n"
    )
    (deep / "6.mbox").write_bytes(box.encode())
    (deep / "7.ics").symlink_to(tmp_path / "1.ics")

    found, skipped = read_history(tmp_path)
    mailed = [one for one in found if isinstance(one, MailedObject)]
    assert [one.meetings[0].uid for one in found if not isinstance(one, MailedObject)] == ["a", "b"]
    assert [one.object.meetings[0].uid for one in mailed] == ["d", "e", "f"]
    assert {one.received for one in mailed} == {datetime(2026, 4, 30, 16, 5, tzinfo=UTC)}
    assert len(skipped) == 2
    assert "'c'" in skipped[0]
    assert skipped[1].startswith("2.ics ")


def test_a_file_given_by_name_that_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "1.ics").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is not iCalendar"):
        read_history(tmp_path / "1.ics")
    with pytest.raises(ValueError, match="is no calendar"):
        read_history(tmp_path / "notes.txt")
    with pytest.raises(OSError, match="No such file"):
        read_history(tmp_path / "none.ics")
