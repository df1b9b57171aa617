"""Who people are to a user and how much topics matter: the people-and-topics table, from CSV or vCard."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from kinfolk.datasets.meetings import MEETING_FEATURES

COLUMNS = ("person", "name", "job", "relation", "topic", "importance")
JOBS = MEETING_FEATURES["invitee_job"]
RELATIONS = MEETING_FEATURES["invitee_relation"]
LEVELS = MEETING_FEATURES["topic_importance"]

MAX_BYTES = 5 * 2**20
MAX_CONTACTS = 20_000
# Topics are sought in text that strangers wrote: no more of it than this is looked at.
MAX_SOUGHT = 5_000
_MAX_PHRASE = 12


class Contact(NamedTuple):
    """One line of the table: a person (``key`` is the mail address) or a topic (``key`` is a word or phrase)."""

    kind: str
    key: str
    job: str = "other"
    relation: str = "other"
    importance: str = "other"


class ContactLike(Protocol):
    """Anything with a contact's fields, such as a row of the ledger."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def key(self) -> str: ...  # noqa: D102
    @property
    def job(self) -> str: ...  # noqa: D102
    @property
    def relation(self) -> str: ...  # noqa: D102
    @property
    def importance(self) -> str: ...  # noqa: D102


def words_of(text: str) -> tuple[str, ...]:
    """Give the words of a text, without case and punctuation.

    Examples
    --------
    >>> words_of("Budget: Q3-review")
    ('budget', 'q3', 'review')
    """
    return tuple(re.findall(r"\w+", text[:MAX_SOUGHT].casefold()))


class People:
    """What a user's table says of persons and topics; "other" for all that it does not name.

    Parameters
    ----------
    contacts : iterable of Contact
        Persons and topics. Of two lines about the same person or topic, the later one counts.

    Examples
    --------
    >>> people = People([Contact("person", "ada@example.org", job="faculty"), Contact("topic", "thesis defence",
    ...                  importance="critical")])
    >>> people.job_of("Ada@example.org"), people.relation_of("ada@example.org"), people.job_of("bob@example.org")
    ('faculty', 'other', 'other')
    >>> people.importance_of("Thesis defence of Carl")
    'critical'
    """

    def __init__(self, contacts: Iterable[Contact] = ()) -> None:
        self.contacts: list[Contact] = list(contacts)
        self._persons = {one.key: one for one in self.contacts if one.kind == "person"}
        self._topics = {words_of(one.key): one.importance for one in self.contacts if one.kind == "topic"}
        self._lengths = sorted({len(phrase) for phrase in self._topics})

    @classmethod
    def read(cls, path: str | Path) -> People:
        """Read a table from a ``.csv`` or ``.vcf`` file.

        A CSV file has some of the columns person, name, job, relation, topic and importance; each row names a
        person by mail address, a topic, or both. Of a vCard, every EMAIL is a person; the job is the first of
        the known jobs that stands as a word in ROLE, TITLE or CATEGORIES, the relation likewise in CATEGORIES.
        """
        path = Path(path)
        if path.suffix.lower() not in (".csv", ".vcf"):
            raise ValueError(f"{path.name} must be a .csv or a .vcf file to be read as a people-and-topics table.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(
                f"{path.name} is larger than the {MAX_BYTES:,} bytes that a people-and-topics table may have."
            )
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path.name} must be UTF-8, but byte {error.start} is not.") from None
        return cls(_from_csv(text, path.name) if path.suffix.lower() == ".csv" else _from_vcards(text, path.name))

    @classmethod
    def from_contacts(cls, rows: Iterable[ContactLike]) -> People:
        """Make a table of rows of the ledger, or of anything else with a contact's fields."""
        return cls(Contact(row.kind, row.key, row.job, row.relation, row.importance) for row in rows)

    def job_of(self, address: str) -> str:
        """Say what someone does; "other" where it is not known."""
        person = self._persons.get(address.lower())
        return person.job if person else "other"

    def relation_of(self, address: str) -> str:
        """Say what someone is to the user; "other" where it is not known."""
        person = self._persons.get(address.lower())
        return person.relation if person else "other"

    def importance_of(self, words: str) -> str:
        """Say how important the most important topic is that a line of the words names; "other" where none does."""
        found = (
            self._topics[said[at : at + n]]
            for said in map(words_of, words[:MAX_SOUGHT].splitlines())
            for n in self._lengths
            for at in range(len(said) - n + 1)
            if said[at : at + n] in self._topics
        )
        return max(found, key=LEVELS.index, default="other")


def _from_csv(text: str, where: str) -> list[Contact]:
    try:
        return _contacts(csv.DictReader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True), where)
    except csv.Error as error:
        raise ValueError(f"{where} is not a CSV file: {error}.") from None


def _contacts(table: csv.DictReader[str], where: str) -> list[Contact]:
    columns = [(name or "").strip().lower() for name in table.fieldnames or ()]
    strange = [name for name in columns if name not in COLUMNS]
    if strange or len(set(columns)) < len(columns) or not {"person", "topic"} & set(columns):
        raise ValueError(
            f"{where} has the columns {', '.join(columns) or 'none'}, but needs person or topic, and may have "
            f"{', '.join(COLUMNS)} once each."
        )
    table.fieldnames = columns
    contacts: list[Contact] = []
    lines: dict[tuple[str, str], int] = {}
    for row in table:
        number = table.line_num
        if None in row:
            raise ValueError(f"{where}, line {number}, has more cells than the {len(columns)} columns.")
        cell = {name: (value or "").strip() for name, value in row.items()}
        if not any(cell.values()):
            continue
        person, topic = cell.get("person", ""), cell.get("topic", "")
        if not person and not words_of(topic):
            raise ValueError(f"{where}, line {number}, names neither a person nor a topic.")
        if person:
            job = _among(JOBS, cell.get("job", ""), "job", where, number)
            relation = _among(RELATIONS, cell.get("relation", ""), "relation", where, number)
            contacts.append(Contact("person", _address(person, where, number), job, relation))
        if topic:
            if len(words_of(topic)) > _MAX_PHRASE:
                raise ValueError(f"{where}, line {number}: a topic may have at most {_MAX_PHRASE} words.")
            importance = _among(LEVELS, cell.get("importance", ""), "importance", where, number)
            contacts.append(Contact("topic", " ".join(words_of(topic)), importance=importance))
        for one in contacts[-(bool(person) + bool(topic)) :]:
            earlier = lines.setdefault((one.kind, one.key), number)
            if earlier != number:
                raise ValueError(f"{where}, line {number}: the {one.kind} {one.key} already stands in line {earlier}.")
        if len(contacts) > MAX_CONTACTS:
            raise ValueError(f"{where} has more than the {MAX_CONTACTS:,} persons and topics that a table may have.")
    return contacts


def _among(allowed: Sequence[str], given: str, column: str, where: str, line: int) -> str:
    value = given.casefold() or "other"
    if value not in allowed:
        raise ValueError(f"{where}, line {line}: {column} is {given!r}, but must be one of {', '.join(allowed)}.")
    return value


def _address(given: str, where: str, line: int) -> str:
    address = given.lower().removeprefix("mailto:")
    if not re.fullmatch(r"[^\s@]+@[^\s@]+", address):
        raise ValueError(f"{where}, line {line}: person is {given!r}, but must be a mail address.")
    return address


def _from_vcards(text: str, where: str) -> list[Contact]:
    import vobject  # type: ignore[import-untyped]

    try:
        cards = [card for card in vobject.readComponents(text, ignoreUnreadable=True) if card.name == "VCARD"]
    except Exception as error:  # whatever a file sets off in the parser, it is no vCard file
        raise ValueError(f"{where} is not a vCard file: {' '.join(str(error).split())}.") from error
    if not cards:
        raise ValueError(f"{where} holds no vCard.")
    persons: dict[str, Contact] = {}
    for card in cards:
        said = {name: card.contents.get(name, ()) for name in ("email", "role", "title", "categories")}
        groups = _words(said["categories"])
        job = _first_of(JOBS, [*_words(said["role"]), *_words(said["title"]), *groups])
        relation = _first_of(RELATIONS, groups)
        for email in said["email"]:
            address = str(email.value).strip().lower().removeprefix("mailto:")
            before = persons.get(address, Contact("person", address))
            # Address books keep several cards of one person: each may know what the others do not.
            persons[address] = before._replace(
                job=job if before.job == "other" else before.job,
                relation=relation if before.relation == "other" else before.relation,
            )
    if len(persons) > MAX_CONTACTS:
        raise ValueError(f"{where} has more than the {MAX_CONTACTS:,} persons that a table may have.")
    return list(persons.values())


def _words(lines: Iterable[object]) -> list[str]:
    """All words of some vCard lines; a line's value is a text, or a list of texts where commas divide it."""
    values = (getattr(line, "value", "") for line in lines)
    return [
        word
        for value in values
        for text in (value if isinstance(value, list) else [value])
        for word in words_of(str(text))
    ]


def _first_of(allowed: Sequence[str], words: Iterable[str]) -> str:
    return next((word for word in words if word in allowed), "other")
