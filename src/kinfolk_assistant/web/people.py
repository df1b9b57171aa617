"""The page "people like you": who is kin to whom, among those who agreed, by name alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from fastapi import APIRouter
from numpy.typing import NDArray
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import Response

from kinfolk_assistant.ledger.tables import Model, User
from kinfolk_assistant.service import kin
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.models import InUse
from kinfolk_assistant.web.kin_drawing import draw_kin
from kinfolk_assistant.web.pages import show
from kinfolk_assistant.web.visitors import Reader, Served

router = APIRouter()

MOST_SHOWN = 60
LEAST_SHARE = 0.05
LONGEST_NAME = 24

NOTHING_LEARNT = "Nothing is learnt yet. As soon as there are answers to learn from, people appear here."
TOO_FEW = "Fewer than {} other people have agreed to help, so nobody is shown: it would tell what one of them answers."
NOBODY = "Nobody has agreed yet to help others, so there is nobody to show."


class _Team(NamedTuple):
    addresses: list[str]
    names: list[str]
    similarity: NDArray[np.float64]
    left_out: int


@router.get("/people")
def people_page(request: Request, assistant: Served, visitor: Reader) -> Response:
    """Show who answers like the user."""
    with assistant.ledger.read() as session:
        using = assistant.models.of(session, visitor.address)
        too_few = kin.too_few_kin(session, using.model, visitor.address)
        made = session.execute(select(Model.made_at, Model.n_rows).where(Model.id == using.id)).first()
    if using.model is None or made is None or not using.model.users:
        return show(request, "people.html", visitor, picture=None, nothing=NOTHING_LEARNT)
    if too_few:
        return show(request, "people.html", visitor, picture=None, nothing=TOO_FEW.format(kin.LEAST))
    team = _team(assistant, using, visitor.address)
    if team.addresses in ([], [visitor.address]):
        return show(request, "people.html", visitor, picture=None, nothing=NOBODY)
    you = team.addresses.index(visitor.address) if visitor.address in team.addresses else None
    nearest: list[tuple[str, float]] = []
    if you is not None:
        shares = zip(team.names, team.similarity[you].tolist(), strict=True)
        others = [pair for place, pair in enumerate(shares) if place != you and pair[1] >= LEAST_SHARE]
        nearest = sorted(others, key=lambda pair: (-pair[1], pair[0]))[:10]
    return show(
        request,
        "people.html",
        visitor,
        picture=draw_kin(team.names, team.similarity, you),
        nearest=nearest,
        you_shown=you is not None,
        made_at=made.made_at,
        n_rows=made.n_rows,
        left_out=team.left_out,
    )


def _team(assistant: Assistant, using: InUse, viewer: str) -> _Team:
    """Those of a model who agree now, and the one who looks; the nearest, where there are too many to draw."""
    with assistant.ledger.read() as session:
        rows = session.execute(
            select(User.address, User.name).where(User.agreed_at.is_not(None) | (User.address == viewer))
        )
        names = {address: name or address for address, name in rows}
    assert using.model is not None
    users, similarity = using.model.similarity()
    places = [place for place, address in enumerate(users) if address in names]
    if viewer in users:
        nearness = similarity[users.index(viewer)]
        places.sort(key=lambda place: (users[place] != viewer, -nearness[place]))
    kept = sorted(places[:MOST_SHOWN])
    addresses = [users[place] for place in kept]
    return _Team(
        addresses,
        [_short(names[address]) for address in addresses],
        similarity[np.ix_(kept, kept)],
        len(places) - len(kept),
    )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
