"""Catalogues of translations: the files of GNU gettext (.po), read as they are written by translators' tools.

They are read as text, so that nothing has to be compiled when a translation is changed.
"""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ENGLISH = "en"
_PLURAL = re.compile(r"Plural-Forms:[^\n]*plural=([^;\n]+)")
_NAME = re.compile(r"X-Language-Name: *([^\n]+)")
_GAP = re.compile(r"%\((\w+)\)s")
# Gaps with words of ours in them; the others hold what people wrote, which is left as it is.
_OURS = ("why", "did", "answer", "action", "ago", "some")
_LONGEST = 2000
_FEWEST = 4


class Catalogue(NamedTuple):
    """The sentences of one language."""

    name: str
    messages: dict[str, tuple[str, ...]]
    """From an English sentence to its translation; to one for each plural where it has some."""
    plural: Callable[[int], int]
    shapes: tuple[tuple[re.Pattern[str], str], ...]
    """Sentences with gaps, as patterns by which one that was written in English is known again."""

    def gettext(self, text: str) -> str:
        """Translate a sentence; one that is not known stays English."""
        return self.messages.get(text, (text,))[0]

    def ngettext(self, one: str, many: str, n: int) -> str:
        """Translate a sentence about a number."""
        found = self.messages.get(one)
        if found is None or len(found) == 1:
            return one if n == 1 else many
        return found[min(self.plural(n), len(found) - 1)]

    def tell(self, text: str) -> str:
        """Translate a sentence that was put together, and perhaps kept, in English.

        Examples
        --------
        >>> catalogue("de").tell("You put “Ledger” away unanswered.")
        'Sie haben „Ledger“ ohne Antwort weggelegt.'
        """
        if not text or not self.messages or len(text) > _LONGEST:
            return text
        if text in self.messages:
            return self.messages[text][0]
        for shape, message in self.shapes:
            held = shape.fullmatch(text)
            if held is not None:
                told = {name: self.tell(one) if name in _OURS else one for name, one in held.groupdict().items()}
                return self.messages[message][0] % told
        return text


@cache
def languages() -> dict[str, str]:
    """Give the languages that there are, and what they call themselves."""
    return {ENGLISH: "English"} | {path.stem: catalogue(path.stem).name for path in sorted(HERE.glob("*.po"))}


@cache
def catalogue(language: str) -> Catalogue:
    """Give the catalogue of a language; an empty one, which leaves everything English, where there is none."""
    path = HERE / f"{language}.po"
    if not re.fullmatch(r"[a-z]{2,3}", language) or not path.is_file():
        return Catalogue("English", {}, lambda n: int(n != 1), ())
    messages = read_po(path.read_text(encoding="utf-8"))
    head = messages.pop("", ("",))[0]
    plural = _PLURAL.search(head)
    named = _NAME.search(head)
    # What is hardly more than gaps would fit anything. Of two that fit, the one with more words of its own comes first.
    own = {one: sum(letter.isalpha() for letter in _GAP.sub("", one)) for one in messages if _GAP.search(one)}
    with_gaps = sorted((one for one, letters in own.items() if letters >= _FEWEST), key=lambda one: -own[one])
    return Catalogue(
        named[1].strip() if named else language,
        messages,
        gettext.c2py(plural[1]) if plural else lambda n: int(n != 1),
        tuple((_shape(one), one) for one in with_gaps),
    )


def read_po(text: str) -> dict[str, tuple[str, ...]]:
    r"""Read a catalogue: from each msgid to its msgstr, or to all of its plurals.

    Examples
    --------
    >>> read_po('msgid "Yes"\nmsgstr "Ja"\n\nmsgid "%(n)s day"\nmsgid_plural "%(n)s days"\n'
    ...         'msgstr[0] "%(n)s Tag"\nmsgstr[1] "%(n)s "\n"Tage"\n')
    {'Yes': ('Ja',), '%(n)s day': ('%(n)s Tag', '%(n)s Tage')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for entry in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        name = ""
        for line in entry.splitlines():
            told = re.match(r'(msg\w+(?:\[\d+\])?)?\s*("(?:[^"\\]|\\.)*")\s*$', line)
            if line.startswith("#") or told is None:
                continue
            name = told[1] or name
            fields[name] = fields.get(name, "") + ast.literal_eval(told[2])
        if "msgid" in fields:
            strings = tuple(one for key, one in sorted(fields.items()) if key.startswith("msgstr"))
            if all(strings):
                found[fields["msgid"]] = strings
    return found


def _shape(message: str) -> re.Pattern[str]:
    """Give the pattern of a sentence with gaps; a gap that comes twice must hold the same both times."""
    parts = _GAP.split(message)
    written = [re.escape(parts[0])]
    for place in range(1, len(parts), 2):
        name = parts[place]
        again = name in parts[1:place:2]
        written += [f"(?P={name})" if again else f"(?P<{name}>.*?)", re.escape(parts[place + 1])]
    return re.compile("".join(written), re.DOTALL)
