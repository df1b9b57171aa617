"""How the assistant decides, with every feature's rule; it shows nobody's data, so anybody may read it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.features.rules import RULES
from kinfolk_assistant.web.pages import show
from kinfolk_assistant.web.visitors import Anyone

router = APIRouter()


@router.get("/about")
def about_page(request: Request, visitor: Anyone) -> Response:
    """Show the rules."""
    return show(request, "about.html", visitor, rules=RULES.values())
