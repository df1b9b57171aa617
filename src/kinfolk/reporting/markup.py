"""HTML that cannot be broken by what stands in it: text is escaped wherever it enters, and only here."""

from __future__ import annotations

from html import escape
from typing import Any

# Elements that have no end.
_VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})


class Html(str):
    """Text that is HTML already; any other text is escaped where it is put into an element."""

    __slots__ = ()


def element(name: str, /, *children: Any, **attributes: Any) -> Html:
    """An element with these children, of which those that are None are left out.

    An attribute that is None or False is left out, one that is True has no value. ``class_`` and ``for_`` are written
    without their underscore, other underscores as hyphens.

    Examples
    --------
    >>> element("p", "1 < 2, ", element("b", "true"), class_="note", hidden=True)
    '<p class="note" hidden>1 &lt; 2, <b>true</b></p>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: Any) -> Html:
    """Children side by side, text among them escaped, None and lists of them left out or taken apart.

    Examples
    --------
    >>> joined("a & b", None, [element("br"), 3])
    'a &amp; b<br>3'
    """
    parts: list[str] = []
    for child in children:
        if isinstance(child, list | tuple):
            parts.append(joined(*child))
        elif child is not None:
            parts.append(child if isinstance(child, Html) else escape(_printable(str(child))))
    return Html("".join(parts))


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(_printable(str(value)))}"'


def _printable(text: str) -> str:
    """Text without what no page may hold: control characters and halves of pairs."""
    if text.isprintable():
        return text
    kept = (sign if sign.isprintable() or sign in "\n\t " else "�" for sign in text)
    return "".join(kept)
