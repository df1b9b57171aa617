"""The people-and-topics table, and places."""

from types import SimpleNamespace

import pytest

from kinfolk_assistant.features import people as people_module
from kinfolk_assistant.features.people import Contact, People
from kinfolk_assistant.features.places import place_of

TABLE = """\
person,name,job,relation,topic,importance
Ada@Example.org,Ada,faculty,supervisor,,
bob@example.org,"Bob, the other",,Peer,,
,,,,Thesis defence,critical
,,,,"defence",unimportant

eve@example.org,,student,,party,possibly important
"""


def written(tmp_path, text, name="people.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_table_is_read_from_csv(tmp_path):
    people = People.read(written(tmp_path, "\ufeff" + TABLE))
    assert (people.job_of("ada@example.org"), people.relation_of("ADA@example.org")) == ("faculty", "supervisor")
    assert (people.job_of("bob@example.org"), people.relation_of("bob@example.org")) == ("other", "peer")
    assert (people.job_of("eve@example.org"), people.importance_of("Party!")) == ("student", "possibly important")
    assert people.job_of("nobody@example.org") == people.relation_of("") == "other"


@pytest.mark.parametrize(
    ("words", "importance"),
    [
        ("Carl's THESIS  defence, room 2", "critical"),
        ("Thesis: defence", "critical"),
        ("defence of the thesis", "unimportant"),
        ("defences", "other"),
        ("thesis\ndefence", "unimportant"),
        ("thesis", "other"),
        ("", "other"),
        ("x " * 10_000 + "defence", "other"),
    ],
)
def test_topics_are_sought_as_whole_words_and_the_most_important_counts(tmp_path, words, importance):
    assert People.read(written(tmp_path, TABLE)).importance_of(words) == importance


def test_a_table_goes_through_the_ledgers_rows_unchanged(tmp_path):
    people = People.read(written(tmp_path, TABLE))
    rows = [SimpleNamespace(id=n, user="me", **one._asdict()) for n, one in enumerate(people.contacts)]
    assert People.from_contacts(rows).contacts == people.contacts


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("person,mood\na@b,good\n", "has the columns person, mood, but needs person or topic"),
        ("name,job\nAda,faculty\n", "has the columns name, job, but needs person or topic"),
        ("person,person\na@b,c@d\n", "once each"),
        ("", "has the columns none"),
        ("person,job\na@b.c,wizard\n", "line 2: job is 'wizard', but must be one of other, officer, planner"),
        ("person,relation\n\na@b.c,foe\n", "line 3: relation is 'foe'"),
        ("topic,importance\nbudget,high\n", "line 2: importance is 'high', but must be one of other, unimportant"),
        ("person\nAda\n", "line 2: person is 'Ada', but must be a mail address"),
        ("person,job\n,faculty\n", "line 2, names neither a person nor a topic"),
        ("topic,importance\n!!!,critical\n", "line 2, names neither a person nor a topic"),
        ("person\na@b.c\nA@B.C\n", "line 3: the person a@b.c already stands in line 2"),
        ("topic\nBig deal\nbig  deal\n", "line 3: the topic big deal already stands in line 2"),
        ("person,job\na@b.c,faculty,x\n", "line 2, has more cells than the 2 columns"),
        ("topic\n" + "a b c d e f g h i j k l m\n", "line 2: a topic may have at most 12 words"),
        ('topic\n"x\n', "is not a CSV file"),
        (b"topic\n\xff\n", "must be UTF-8, but byte 6 is not"),
    ],
)
def test_a_bad_table_is_refused_in_one_sentence_that_names_the_place(tmp_path, text, sentence):
    with pytest.raises(ValueError, match=r"^people\.csv.*\.$") as refusal:
        People.read(written(tmp_path, text))
    assert sentence in str(refusal.value)


def test_a_table_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(people_module, "MAX_CONTACTS", 2)
    with pytest.raises(ValueError, match="more than the 2 persons and topics"):
        People.read(written(tmp_path, TABLE))
    monkeypatch.setattr(people_module, "MAX_BYTES", 100)
    with pytest.raises(ValueError, match="larger than the 100 bytes"):
        People.read(written(tmp_path, TABLE))
    with pytest.raises(ValueError, match=r"a \.csv or a \.vcf file"):
        People.read(written(tmp_path, TABLE, "people.txt"))


CARDS = """\
BEGIN:VCARD
VERSION:3.0
FN:Ada
N:;Ada;;;
EMAIL;TYPE=work:Ada@example.org
EMAIL:ada@home.example
TITLE:Head of faculty
CATEGORIES:friends,Supervisor
END:VCARD
BEGIN:VCARD
VERSION:4.0
FN:Bob
EMAIL:bob@example.org
ROLE:Student officer
END:VCARD
BEGIN:VCARD
VERSION:3.0
FN:Bob again
N:;Bob;;;
EMAIL:bob@example.org
ROLE:planner
CATEGORIES:peer
END:VCARD
BEGIN:VCARD
VERSION:3.0
FN:No address
N:;;;;
END:VCARD
"""


def test_a_table_is_read_from_vcards(tmp_path):
    people = People.read(written(tmp_path, CARDS.replace("\n", "\r\n"), "people.VCF"))
    assert people.contacts == [
        Contact("person", "ada@example.org", "faculty", "supervisor"),
        Contact("person", "ada@home.example", "faculty", "supervisor"),
        Contact("person", "bob@example.org", "student", "peer"),
    ]


def test_what_is_no_vcard_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"^people\.vcf .*\.$"):
        People.read(written(tmp_path, "BEGIN:VCARD\r\nFN:Ada\r\nEND:VEVENT\r\n", "people.vcf"))
    with pytest.raises(ValueError, match=r"^people\.vcf holds no vCard\.$"):
        People.read(written(tmp_path, "Dear all\r\n", "people.vcf"))


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("Library, 2nd floor", "local"),
        ("THE LIBRARY", "local"),
        ("Libraryhouse", "away"),
        ("Main-Building", "local"),
        ("Main Hall", "away"),
        ("Paris; https://meet.example.org/x", "local"),
        ("tel:+4930123", "local"),
        ("+49 (30) 123 45 67", "local"),
        ("Room 1234567", "away"),
        ("10115 Berlin, Street 12", "away"),
        ("Microsoft Teams Meeting", "local"),
        ("Zoom", "local"),
        ("Zoomstreet 1", "away"),
        ("", None),
        ("  ", None),
    ],
)
def test_a_place_is_near_away_or_not_known(location, place):
    assert place_of(location, ("library", "main building")) == place


@pytest.mark.parametrize("location", ["https://meet.example.org/x", "+49 (30) 123 45 67", "Webex"])
def test_what_is_held_on_the_line_is_near_wherever_the_owner_is(location):
    assert place_of(location, ()) == "local"


def test_without_near_places_no_place_is_called_away():
    assert place_of("Paris", ()) is None
    assert place_of("Paris", ("", " - ")) is None
