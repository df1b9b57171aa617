"""Which way each answer takes, by what the settings file says of its user."""

from __future__ import annotations

from collections.abc import Callable

from kinfolk_assistant.delivery.caldav_server import CalDAVAccount, CalDAVDeliverer, comes_from_server
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.delivery.deliverer import Deliverer, NotDelivered, Outgoing
from kinfolk_assistant.delivery.files import FileDeliverer
from kinfolk_assistant.delivery.online.calendar import OnlineCalendar, reference
from kinfolk_assistant.delivery.online.microsoft import MicrosoftCalendar
from kinfolk_assistant.delivery.smtp import SmtpDeliverer


class Routes:
    """Sends each answer the way its user's settings say.

    An invitation that came through a CalDAV server, from Google or from Microsoft 365 is answered there. Any other is
    answered by mail, and where the user has a calendar on a server, that is brought up to date first. Without a mail
    server, the answer is written into the folder for files.

    Parameters
    ----------
    configuration : Configuration
        What the settings file says; may be replaced while the server runs.
    calendar : callable, optional
        Gives a user's calendar account; by default that of the settings file.
    """

    def __init__(
        self,
        configuration: Configuration,
        calendar: Callable[[str], CalDAVAccount | OnlineCalendar | None] | None = None,
    ) -> None:
        self.configuration = configuration
        self._calendar = calendar or (lambda user: self.configuration.accounts.get(user))

    @property
    def certain(self) -> bool:
        """Whether all ways are certain; `may_repeat` asks of the one way that an answer takes."""
        return self.configuration.smtp is None

    def proposes(self, user: str) -> bool:
        """Whether other times can be proposed: by mail, or by Microsoft 365; calendar servers do not pass them on."""
        return self._posts() is not None or isinstance(self._calendar(user), MicrosoftCalendar)

    def route(self, outgoing: Outgoing) -> Deliverer:
        """Choose the way that an answer takes."""
        account = self._calendar(outgoing.user)
        posts = self._posts()
        if isinstance(account, OnlineCalendar):
            return _online(account, posts, outgoing)
        if account is None or outgoing.answer == "COUNTER":
            return posts or _NoWay()
        calendar = CalDAVDeliverer(account)
        return calendar if posts is None or comes_from_server(outgoing) else WithCalendar(calendar, posts)

    def deliver(self, outgoing: Outgoing) -> None:
        """Send an answer the way it takes."""
        self.route(outgoing).deliver(outgoing)

    def _posts(self) -> Deliverer | None:
        if self.configuration.smtp is not None:
            return SmtpDeliverer(self.configuration.smtp)
        return FileDeliverer(self.configuration.folder) if self.configuration.folder is not None else None


class WithCalendar:
    """Brings the user's calendar up to date, and then sends the answer, unless the calendar's server does so itself.

    What can be repeated comes first: when it fails, or the process dies, the answer has not left.
    """

    def __init__(self, calendar: CalDAVDeliverer, posts: Deliverer) -> None:
        self.calendar = calendar
        self.posts = posts

    @property
    def certain(self) -> bool:
        """Whether a repeated call does no harm."""
        return self.posts.certain

    def deliver(self, outgoing: Outgoing) -> None:
        """Store the answer, then send it."""
        if not self.calendar.store(outgoing):
            self.posts.deliver(outgoing)


class WithOnline:
    """Answers where the meeting is, in an online calendar, and by mail where it is not there."""

    def __init__(self, calendar: OnlineCalendar, posts: Deliverer) -> None:
        self.calendar = calendar
        self.posts = posts

    @property
    def certain(self) -> bool:
        """Whether a repeated call does no harm."""
        return self.posts.certain

    def deliver(self, outgoing: Outgoing) -> None:
        """Answer there, or else send it."""
        if not self.calendar.answer(outgoing):
            self.posts.deliver(outgoing)


def _online(calendar: OnlineCalendar, posts: Deliverer | None, outgoing: Outgoing) -> Deliverer:
    """The way of an answer by somebody whose calendar is online; Google's interface has no proposals."""
    came_from_there = bool(reference(outgoing, calendar.name))
    if outgoing.answer == "COUNTER" and not (came_from_there and isinstance(calendar, MicrosoftCalendar)):
        return posts or _NoWay()
    return calendar if came_from_there or posts is None else WithOnline(calendar, posts)


class _NoWay:
    """For users of whom the settings say nothing."""

    certain = True

    def deliver(self, outgoing: Outgoing) -> None:
        raise NotDelivered(
            f"The settings name no way for answers of {outgoing.user}; add [smtp], [files], or a CalDAV account."
        )
