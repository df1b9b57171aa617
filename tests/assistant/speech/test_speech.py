"""Words of another language: the catalogue, sentences known again, clocks, and pages that hold no English."""

from __future__ import annotations

import gettext
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from kinfolk_assistant.speech.catalogue import HERE, catalogue, languages, read_po
from kinfolk_assistant.speech.manner import Manner, wanted_language
from kinfolk_assistant.web.pages import HERE as WEB
from kinfolk_assistant.web.pages import environment

GERMAN = catalogue("de")
_GAP = re.compile(r"%\((\w+)\)s")


def messages_of_templates() -> set[str]:
    found = set()
    for path in (WEB / "templates").glob("*.html"):
        for _, _, message in environment("en").extract_translations(path.read_text(encoding="utf-8")):  # type: ignore[attr-defined]
            found.add(message if isinstance(message, str) else next(one for one in message if isinstance(one, str)))
    return found


def test_every_sentence_of_the_templates_is_there_in_german() -> None:
    assert messages_of_templates() - set(GERMAN.messages) == set()


def test_a_translation_has_the_gaps_of_its_sentence() -> None:
    for message, told in GERMAN.messages.items():
        for one in told:
            assert set(_GAP.findall(one)) == set(_GAP.findall(message)), message


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="needs GNU gettext's msgfmt")
@pytest.mark.parametrize("language", sorted(set(languages()) - {"en"}))
def test_the_catalogue_is_read_as_gnu_gettext_reads_it(language: str, tmp_path: Path) -> None:
    compiled = tmp_path / "compiled.mo"
    source = HERE / f"{language}.po"
    subprocess.run(["msgfmt", "--check-format", "-o", compiled, source], check=True, capture_output=True)
    with compiled.open("rb") as file:
        theirs = gettext.GNUTranslations(file)
    for message, told in read_po(source.read_text(encoding="utf-8")).items():
        if len(told) == 1:
            assert theirs.gettext(message) == told[0]
        else:
            for n in (0, 1, 2, 5, 21):
                ours = catalogue(language).ngettext(message, "many", n)
                assert theirs.ngettext(message, "many", n) == ours


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("You decline “Rules”.", "Sie sagen „Rules“ ab."),
        ("Would accept “No”, but it is at night.", "Würde „No“ zusagen, aber es ist nachts."),
        (
            "The yes to “a” was not sent: it overlaps “Undo” in your calendar.",
            "Das Ja zu „a“ wurde nicht verschickt: es überschneidet sich mit „Undo“ in Ihrem Kalender.",
        ),
        (
            "you have declined 2 invitations so far, and no yes is sent for you before 3",
            "Sie haben bisher 2 Einladungen abgesagt, und vor 3 wird kein Ja für Sie verschickt",
        ),
        (
            "Google asks to be left alone for 120 seconds; it is tried again.",
            "Google bittet darum, 120 Sekunden in Ruhe gelassen zu werden; es wird wieder versucht.",
        ),
        (
            "“Google”: it is no longer in your calendar: its organiser has called it off, or you have removed it.",
            "„Google“ steht nicht mehr in Ihrem Kalender: Es wurde abgesagt, oder Sie haben es entfernt.",
        ),
        ("Something that nobody has translated.", "Something that nobody has translated."),
    ],
)
def test_a_kept_sentence_is_told_in_german_and_what_people_wrote_stays_as_it_is(text: str, told: str) -> None:
    assert GERMAN.tell(text) == told


def test_what_a_stranger_wrote_cannot_reach_the_format_of_a_sentence() -> None:
    assert GERMAN.tell("You decline “%(secret)s %d {0}”.") == "Sie sagen „%(secret)s %d {0}“ ab."


def test_clocks_days_and_weeks() -> None:
    zone = ZoneInfo("Europe/Berlin")
    midnight, noon = datetime(2026, 3, 1, 23, tzinfo=UTC), datetime(2026, 3, 2, 11, 30, tzinfo=UTC)
    assert [Manner(clock="12").time(one.astimezone(zone)) for one in (midnight, noon)] == ["12:00 am", "12:30 pm"]
    assert Manner("de").span(noon, noon, False, zone, noon) == ("Mo, 2. März", "12:30–12:30")
    assert [number for number, _ in Manner(week_start=6).week()] == [6, 0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("accepted", "language"), [("de", "de"), ("en;q=0.1, de-CH;q=0.2", "de"), ("xx, q", "en"), ("de;q=x", "en")]
)
def test_the_browser_is_heard(accepted: str, language: str) -> None:
    assert wanted_language(accepted) == language
