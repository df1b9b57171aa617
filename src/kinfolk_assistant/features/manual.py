"""The rules of the features as one page of Markdown: ``python -m kinfolk_assistant.features.manual`` prints it."""

from __future__ import annotations

from kinfolk_assistant.features.past import CHANGED, ENTERED, GIVEN_UP
from kinfolk_assistant.features.rules import RULES, Rule

_ABOUT = f"""\
# The features of a meeting request

Names and values of the first fifteen are those of appendix B of the thesis "Clustered Naive Bayes" (Roy, 2006), which
defines none of them; the rules are this project's reading. Seven more tell what offices run on beside them. Organiser,
domain and words of the title are looked at too, by how often the owner, and others, accept what bears them. The same
code computes all of it for invitations of the past, from which the assistant learns, and for those that come in. This
page is made from the rules in the code.

## What is looked at

- **The request**: the invitation as it came. Of a series, the first occurrence that was not over when the request came,
  by the series' rule. Of a request that goes on for more than 31 days the first 31 are held against the calendar.
- **The people-and-topics table**: what the owner says of people (job, relation) and of topics (importance).
- **Engagements**: the events of the owner's calendar, and each occurrence of its series. Invitations that the owner has
  not answered yet, or with "perhaps", take time like accepted ones. An event takes none if it is marked as free time
  (TRANSP:TRANSPARENT), has no length, was declined by the owner or cancelled. An event of whole days that is not marked
  as free takes these days from midnight to midnight.
- No version of the requested meeting itself counts as an engagement: a meeting that is moved frees its old time.
  If the request is about one occurrence of a series, the series' other occurrences count.

Days and hours are those of the owner's time zone, and so are whole days and times without a zone.

## The calendar as it stood

A calendar keeps no past states. Whether an engagement stood when a request came is read off what it says of itself:

- It stood if it had been seen by then as it is now; else if it was CREATED by then, or, where it does not say when it
  was created, last revised (DTSTAMP) by then. What was created later, or was gone by then, did not stand.
- What the owner declined stood until the answer was given, where the time of the answer is known. Where it is not, and
  for what was cancelled, the last revision (DTSTAMP) tells if it lies before the request; if not, that is not known:
  "{GIVEN_UP}".
- What has no CREATED and was revised after the request, or does not say when, may have been entered before the request
  or after it: "{ENTERED}".
- What was revised after the request and has a SEQUENCE above 0, or is a moved occurrence of a series, may have stood
  elsewhere: "{CHANGED}".

A calendar that is not known is not an empty one. Where it was never read, or not in the day before the request came,
all that hangs on it is missing, but for an overlap with a meeting that was accepted here.

A feature is computed without all such engagements and with all of them, where they are now. If both give the same
value, that is it; if not, it is missing, for the reasons quoted. Each feature moves one way only as engagements are
added: no selection of them gives yet another value.

What cannot be seen: where a moved event stood before, unless it is an occurrence of a series, whose old time the series
tells; occurrences struck from a series (EXDATE) after the request came; events deleted before the calendar was first
read.

## The features
"""


def page() -> str:
    """Give the page: what is looked at, then every feature with every one of its values.

    Examples
    --------
    >>> "| `yes` | at least one does |" in page()
    True
    """
    return "\n".join([_ABOUT, *map(_section, RULES.values())])


def _section(rule: Rule) -> str:
    rows = [f"| `{value}` | {words} |" for value, words in rule.values.items()]
    missing = f"\nMissing if {rule.missing}.\n" if rule.missing else "\nNever missing.\n"
    return "\n".join(
        [
            f"### `{rule.feature}`",
            "",
            f"Means: {rule.meaning}.",
            "",
            rule.how,
            "",
            "| value | rule |",
            "| --- | --- |",
            *rows,
            missing,
        ]
    )


if __name__ == "__main__":
    print(page(), end="")
