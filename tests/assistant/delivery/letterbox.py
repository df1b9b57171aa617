"""A real SMTP listener that keeps what it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope

from kinfolk_assistant.delivery.smtp import MailServer
from tests.assistant.delivery.servers import free_port


class Letterbox:
    """Keeps what comes, or refuses it."""

    def __init__(self, *, rcpt: str = "", data: str = "250 taken") -> None:
        self.rcpt, self.data = rcpt, data
        self.envelopes: list[Envelope] = []
        self.ciphered: list[bool] = []

    async def handle_RCPT(self, _: Any, session: Any, envelope: Envelope, address: str, options: Any) -> str:
        if not self.rcpt:
            envelope.rcpt_tos.append(address)
        return self.rcpt or "250 ok"

    async def handle_DATA(self, _: Any, session: Any, envelope: Envelope) -> str:
        self.envelopes.append(envelope)
        self.ciphered.append(session.ssl is not None)
        return self.data

    def message(self) -> EmailMessage:
        [envelope] = self.envelopes
        read = message_from_bytes(envelope.original_content or b"", policy=policy.default)
        assert isinstance(read, EmailMessage)
        return read


@contextmanager
def listening(box: Letterbox, **more: Any) -> Iterator[int]:
    controller = Controller(box, hostname="127.0.0.1", port=free_port(), **more)
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()


def plain(port: int, **more: Any) -> MailServer:
    return MailServer("127.0.0.1", port, "none", timeout=5.0, **more)
