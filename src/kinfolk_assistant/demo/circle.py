"""Whom a made-up person knows and what they talk about: the people-and-topics table behind four of the features."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from kinfolk.datasets.meeting_rules import GROUPS
from kinfolk.datasets.meetings import TEAM, Person
from kinfolk_assistant.features.people import Contact as Line


class Contact(NamedTuple):
    """Someone who sends invitations; what they are to the person asked stands in that person's table."""

    address: str
    name: str
    job: str
    relation: str


class Institution(NamedTuple):
    """Where people work: mail domain, time zone, the house they work in, and the places they travel to."""

    domain: str
    zone: str
    house: str
    away: tuple[str, ...]
    topics: Mapping[str, tuple[str, ...]]


_MILITARY_TOPICS = {
    "critical": ("evacuation", "live fire", "casualty report"),
    "very important": ("supply lines", "command briefing", "air corridor"),
    "important": ("radio plan", "bridge crossing", "patrol routes"),
    "possibly important": ("vehicle maintenance", "map update", "field kitchen"),
    "unimportant": ("parade", "canteen menu", "unit newsletter"),
}
_PROFESSOR_TOPICS = {
    "critical": ("tenure case", "thesis defence", "lab accident"),
    "very important": ("grant proposal", "thesis chapter", "hiring"),
    "important": ("paper draft", "qualifying exam", "curriculum"),
    "possibly important": ("reading group", "problem set", "lab tour"),
    "unimportant": ("bake sale", "office move", "alumni dinner"),
}
_PROJECT_TOPICS = {
    "critical": ("contract renewal", "site visit", "security audit"),
    "very important": ("system evaluation", "quarterly report", "final demo"),
    "important": ("integration test", "budget forecast", "milestone"),
    "possibly important": ("code walk", "data collection", "tool training"),
    "unimportant": ("newsletter", "desk booking", "picnic"),
}

INSTITUTIONS: Mapping[str, Institution] = {
    "Military": Institution(
        "exercise.example", "America/Denver", "Field Post", ("Northport Range", "Camp Juniper"), _MILITARY_TOPICS
    ),
    "MIT": Institution(
        "mit.example", "America/New_York", "Dome Hall", ("Harbour Institute", "Lakeside College"), _PROFESSOR_TOPICS
    ),
    "SRI": Institution(
        "sri.example", "America/Los_Angeles", "Ravine House", ("Capital Office", "Desert Lab"), _PROJECT_TOPICS
    ),
    "Michigan": Institution(
        "michigan.example", "America/Detroit", "Maple Hall", ("Harbour Institute", "Capital Office"), _PROFESSOR_TOPICS
    ),
    "Berkeley": Institution(
        "berkeley.example", "America/Los_Angeles", "Bay Tower", ("Desert Lab", "Lakeside College"), _PROFESSOR_TOPICS
    ),
    "CMU": Institution(
        "cmu.example", "America/New_York", "Forge Hall", ("Harbour Institute", "Desert Lab"), _PROFESSOR_TOPICS
    ),
    "Oregon State": Institution(
        "oregon.example", "America/Los_Angeles", "Cedar Hall", ("Capital Office", "Lakeside College"), _PROFESSOR_TOPICS
    ),
}

# What the people of the team do; relations between them are those of peers.
_PROFESSORS = dict.fromkeys((3, 5, 7, 9), "faculty")
_JOB_OF_GROUP = {**_PROFESSORS, 1: "planner", 2: "officer", 4: "other", 6: "administrator", 8: "other"}
_CONTACTS_PER_KIND = 4
_FIRST = ("Ada", "Ben", "Cleo", "Dov", "Elsa", "Fred", "Greta", "Hal", "Ines", "Jon", "Kit", "Lena", "Max", "Nora")
_LAST = ("Ash", "Brook", "Croft", "Dale", "Elm", "Ford", "Glen", "Heath", "Islip", "Kerr", "Lake", "Marsh", "North")
_TALK = ("first talk", "next steps", "questions", "the week ahead", "open points", "second look", "where we stand")


def address_of(person: Person) -> str:
    """Mail address of someone of the team.

    Examples
    --------
    >>> address_of(TEAM[20])
    'una@sri.example'
    """
    return f"{person.name.lower().replace(' ', '')}@{INSTITUTIONS[person.institution].domain}"


class Circle(NamedTuple):
    """A person's contacts by job and relation, and the place and topics of their institution."""

    owner: str
    name: str
    institution: Institution
    contacts: Mapping[tuple[str, str], tuple[Contact, ...]]

    def summary(self, importance: str, rng: np.random.Generator) -> str:
        """What an invitation is about, in words from which the importance of its topic can be told."""
        talk = _TALK[rng.integers(len(_TALK))]
        topics = self.institution.topics.get(importance)
        return talk.capitalize() if topics is None else f"{topics[rng.integers(len(topics))].capitalize()}: {talk}"

    def place(self, away: bool, rng: np.random.Generator) -> str:
        """A room of the person's house, or a place to travel to."""
        if away:
            return self.institution.away[rng.integers(len(self.institution.away))]
        return f"{self.institution.house}, room {rng.integers(1, 30)}"

    def table(self) -> str:
        """The person's people-and-topics table as CSV; strangers are not in it.

        Examples
        --------
        >>> make_circle(TEAM[20]).table().splitlines()[:2]
        ['person,name,job,relation,topic,importance', 'jory@sri.example,Jory,other,peer,,']
        """
        lines = io.StringIO()
        write = csv.writer(lines, lineterminator="\n").writerow
        write(("person", "name", "job", "relation", "topic", "importance"))
        for one in self._acquaintances():
            write((one.address, one.name, one.job, one.relation, "", ""))
        for importance, topics in self.institution.topics.items():
            for topic in topics:
                write(("", "", "", "", topic, importance))
        return lines.getvalue()

    def lines(self) -> list[Line]:
        """The same table as lines for `People` and for the ledger."""
        people = [Line("person", one.address, one.job, one.relation) for one in self._acquaintances()]
        levels = self.institution.topics.items()
        return people + [Line("topic", topic, importance=level) for level, topics in levels for topic in topics]

    def _acquaintances(self) -> list[Contact]:
        return [one for kind, contacts in self.contacts.items() if kind != ("other", "other") for one in contacts]


def make_circle(person: Person) -> Circle:
    """Make up the people who write to someone: a few for each job and relation that the group meets.

    Examples
    --------
    >>> circle = make_circle(TEAM[0])
    >>> circle.contacts["officer", "supervisor"][0]
    Contact(address='ada.ash@exercise.example', name='Ada Ash', job='officer', relation='supervisor')
    """
    institution = INSTITUTIONS[person.institution]
    mix = GROUPS[person.group].mix
    kinds = [(job, relation) for job in mix.jobs for relation in mix.relations.get(job, {"other": 1.0})]
    colleagues = [
        Contact(address_of(one), one.name, _JOB_OF_GROUP[one.group], "peer")
        for one in TEAM
        if one.institution == person.institution and one.id != person.id
    ]
    contacts = {}
    for i, (job, relation) in enumerate(kinds):
        domain = {"family": "home.example"}.get(relation, "agency.example" if job == "funding" else institution.domain)
        outside = [_outsider(_CONTACTS_PER_KIND * i + k, domain, job, relation) for k in range(_CONTACTS_PER_KIND)]
        inside = [one for one in colleagues if (one.job, one.relation) == (job, relation)]
        contacts[job, relation] = (*inside, *outside)
    return Circle(address_of(person), person.name, institution, contacts)


def _outsider(number: int, domain: str, job: str, relation: str) -> Contact:
    # The two lists' lengths have no common divisor, so the first 182 pairs are all different.
    first, last = _FIRST[number % len(_FIRST)], _LAST[number % len(_LAST)]
    return Contact(f"{first}.{last}@{domain}".lower(), f"{first} {last}", job, relation)
