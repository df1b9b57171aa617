"""What a server writes about itself: lines with the time, as text or as JSON, in which nobody is named."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Literal

Kind = Literal["text", "json"]


class _Lines(logging.Formatter):
    """One line for each event; of an exception its type and place alone, because what it says may name people."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self._kind = kind

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": " ".join(record.getMessage().split()),
        }
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])[-8:]
            places = [f"{one.name} ({one.filename.rpartition('/')[2]}:{one.lineno})" for one in reversed(frames)]
            where = " < ".join(places)
            fields["exception"] = f"{record.exc_info[0].__name__} in {where}"
        if self._kind == "json":
            return json.dumps(fields, ensure_ascii=False)
        return " ".join((fields["time"], fields["level"].upper(), *list(fields.values())[2:]))


def write_logs(kind: Kind) -> None:
    """Write everything that is logged to standard error, one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(kind))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        # Lines of access would hold addresses of clients, and numbers of requests.
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = name != "uvicorn.access"
        logger.setLevel(logging.WARNING)
