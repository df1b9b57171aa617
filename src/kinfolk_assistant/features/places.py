"""Whether a place that an invitation names is near to the user or away."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kinfolk_assistant.features.people import words_of

# Invitations name these instead of a link. What is held on the line is attended from where the user is.
_ON_THE_LINE = ("microsoft teams", "google meet", "zoom", "webex", "skype", "online", "telephone", "by phone")
_LINK = re.compile(r"\b(?:https?|sips?|tel|callto|xmpp):", re.IGNORECASE)
# Eight digits and more with nothing but what divides them: no house, room or postal code is so long.
_PHONE = re.compile(r"(?<!\w)\+?\d(?:[ ()./-]{0,2}\d){7,18}(?!\w)")
_MAX_TEXT = 2_000


def place_of(location: str, places: Sequence[str]) -> str | None:
    """Say where a place is: "local", "away", or None where that is not known.

    Parameters
    ----------
    location : str
        What the invitation says.
    places : sequence of str
        Words and phrases that name places near to the user.

    Examples
    --------
    >>> place_of("Room 5.12, Main Building", ["main building"]), place_of("Paris", ["main building"])
    ('local', 'away')
    >>> place_of("https://meet.example.org/abc", []), place_of("+49 30 1234567", []), place_of("Paris", [])
    ('local', 'local', None)
    """
    location = location[:_MAX_TEXT].strip()
    if not location:
        return None
    if _LINK.search(location) or _PHONE.search(location):
        return "local"
    said = f" {' '.join(words_of(location))} "
    near = [" ".join(words_of(place)) for place in places]
    if any(f" {words} " in said for words in (*_ON_THE_LINE, *near) if words):
        return "local"
    return "away" if any(near) else None
