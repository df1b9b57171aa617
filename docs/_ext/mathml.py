"""Equations as MathML, which browsers draw themselves: pages need no script and nothing from the network."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
ACCENTS = {"ˉ", "^", "ˆ", "~", "˜"}
APPLIED = "\u2061"  # stands between a function's name and what it is a function of


def drawn(equation: str, as_block: bool) -> str:
    """An equation as MathML, with indices of accented letters beside them, and room after a function's name."""
    ElementTree.register_namespace("", NAMESPACE)
    # Named characters of HTML are none of XML.
    written = latex2mathml.tex2mathml(equation, as_block=as_block)
    written = re.sub(r"&(?!lt;|gt;|amp;)\w+;", lambda named: unescape(named[0]), written)
    root = ElementTree.fromstring(written)
    for parent in list(root.iter()):
        children = list(parent)
        if parent.tag == _tag("munderover") and (children[2].text or "") in ACCENTS:
            base, below, accent = children
            over = ElementTree.Element(_tag("mover"), {"accent": "true"})
            over.extend([base, accent])
            parent.tag = _tag("msub")
            parent[:] = [over, below]
        elif parent.tag in (_tag("math"), _tag("mrow")):
            for place in reversed(range(len(children) - 1)):
                applied = children[place].tag == _tag("mo") and children[place].text == APPLIED
                if applied and children[place + 1].tag != _tag("mo"):
                    parent.insert(place + 1, ElementTree.Element(_tag("mspace"), {"width": "0.17em"}))
    return ElementTree.tostring(root, encoding="unicode")


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(drawn(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({node["number"]})</span>')
    self.body.append(drawn(node.astext(), as_block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Make MathML one of the renderers of equations."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
