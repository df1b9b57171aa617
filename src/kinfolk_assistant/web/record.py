"""The record: everything that was done, and how often the assistant was right."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.web.automatic import to_undo
from kinfolk_assistant.web.pages import show
from kinfolk_assistant.web.visitors import Reader, Served

router = APIRouter()

LINES = 50


@router.get("/ledger")
def ledger_page(
    request: Request,
    assistant: Served,
    visitor: Reader,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """Show a page of the ledger, the latest line first."""
    # One line more than is shown tells whether there is another page.
    deeds = assistant.deeds(visitor.address, before, LINES + 1)
    shown = deeds[:LINES]
    latest_line = {deed.request_id: deed.id for deed in reversed(shown) if deed.request_id is not None}
    automatic = to_undo(assistant.ledger, visitor.address, list(latest_line))
    return show(
        request,
        "ledger.html",
        visitor,
        deeds=shown,
        undoable={latest_line[number] for number in automatic},
        earlier=shown[-1].id if len(deeds) > LINES else None,
        later=before is not None,
    )


@router.get("/score")
def score_page(request: Request, assistant: Served, visitor: Reader) -> Response:
    """Show how often decisions were what the user then did."""
    return show(request, "score.html", visitor, score=assistant.score(visitor.address))
