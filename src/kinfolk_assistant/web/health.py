"""For those who watch the server: whether it lives, whether it can work, and how much of what there is (Prometheus)."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from kinfolk_assistant.service.operating import Counts, counts
from kinfolk_assistant.web.visitors import Served

router = APIRouter()

_THIS_MACHINE = ("127.0.0.1", "::1", "")


@router.get("/healthz")
def healthz() -> Response:
    """Say that the process answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
def readyz(assistant: Served) -> Response:
    """Say whether the ledger can be read."""
    try:
        with assistant.ledger.read() as session:
            counts(session)
    except (SQLAlchemyError, OSError):
        return PlainTextResponse("the ledger cannot be read\n", 503)
    return PlainTextResponse("ok\n")


@router.get("/metrics")
def metrics(request: Request, assistant: Served) -> Response:
    """Give numbers of all users together, to programs on this machine alone; nothing of a person is among them."""
    asked_by = request.client.host if request.client is not None else ""
    if asked_by not in _THIS_MACHINE or "x-forwarded-for" in request.headers:
        return PlainTextResponse("Metrics are for this machine alone.\n", 403)
    with assistant.ledger.read() as session:
        found = counts(session)
    return PlainTextResponse(as_metrics(found), media_type="text/plain; version=0.0.4")


def as_metrics(found: Counts) -> str:
    """Write counts in the text format of Prometheus.

    Examples
    --------
    >>> print(as_metrics(Counts(3, 1, 0, 5, 2, {"sent": 7}, 0, 1, None, False)).splitlines()[2])
    kinfolk_users 3
    """
    gauges = {
        "users": ("Users.", found.users),
        "users_automated": ("Users with automation on.", found.automated),
        "users_disabled": ("Users who are shut out.", found.disabled),
        "requests_open": ("Requests that wait for an answer.", found.open),
        "requests_undecided": ("Open requests about which nothing is decided yet.", found.undecided),
        "visits_failing": ("Users whose server could not be visited the last time.", found.failing_visits),
        "models": ("Models in use.", found.models),
        "stopped": ("Whether the administrator has stopped all automatic answers.", int(found.stopped)),
    }
    lines = []
    for name, (words, value) in gauges.items():
        lines += [f"# HELP kinfolk_{name} {words}", f"# TYPE kinfolk_{name} gauge", f"kinfolk_{name} {value}"]
    lines += ["# HELP kinfolk_replies Replies by state.", "# TYPE kinfolk_replies gauge"]
    lines += [f'kinfolk_replies{{state="{state}"}} {n}' for state, n in found.replies.items()]
    if found.learnt_at is not None:
        lines += ["# HELP kinfolk_learnt_timestamp_seconds When the latest model was fitted."]
        lines += ["# TYPE kinfolk_learnt_timestamp_seconds gauge"]
        lines += [f"kinfolk_learnt_timestamp_seconds {found.learnt_at.timestamp():.0f}"]
    return "\n".join(lines) + "\n"
