"""What an import found, in numbers and in words: its rows, their answers, and what of them could not be known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kinfolk_assistant.features.rules import ALL_FEATURES

NO_DECLINES = (
    "No declined invitation was found. Many servers and mail programs remove an invitation from the calendar once it "
    "is declined, so declines are taken to be missing: this past teaches what is accepted, not how often. Import the "
    "mails with the invitations and your replies too, or decline what you do not want by hand; until a few declines "
    "are known, the assistant accepts nothing by itself."
)
NO_ACCEPTS = (
    "No accepted invitation was found, so accepted ones are taken to be missing: this past teaches what is declined, "
    "not how often. Look whether the address of the user is the one that the invitations were sent to."
)
NO_INVITATIONS = (
    "No past invitation was found: an invitation names an organiser who is not the user, and the user among those "
    "invited. Look whether the address of the user is the one that the invitations were sent to."
)

# The ways in which the time of arrival can be known, from the most exact on; "" where it cannot.
ARRIVALS: Mapping[str, str] = {
    "mail": "by the mail that brought it",
    "request": "by the time at which the organiser sent it (DTSTAMP of the request)",
    "created": "by the time at which it was put into the calendar (CREATED)",
    "stamp": "by the last change of the calendar's entry (DTSTAMP)",
    "": "not known, so that nothing is said about the calendar as it then stood",
}


@dataclass(frozen=True)
class ImportReport:
    """What one import found for one user.

    Attributes
    ----------
    user : str
        The user's address.
    rows : int
        Past invitations found: `accepts` + `declines` + `unlabelled`.
    accepts, declines, unlabelled : int
        Rows by the user's own answer; unlabelled are those tentative, never answered, or answered nobody knows how.
    added, refreshed : int
        Rows that were not in the ledger before, and rows of which something has changed; the others are as they were.
    still_open : int
        Invitations that are neither answered nor past: they are left for the assistant, and are not rows.
    live : int
        Invitations that the assistant itself has dealt with: its own record of them stays.
    entries : int
        Objects of the calendar that were stored, invitations and own engagements.
    arrivals : Mapping[str, int]
        Rows by how it is known when they came; the keys are those of `ARRIVALS`.
    unknown : Mapping[str, Mapping[str, int]]
        For each of the fifteen features, how many rows do not have it, by reason.

    Examples
    --------
    >>> report = ImportReport("una@sri.example", rows=4, accepts=3, declines=0, unlabelled=1, added=4,
    ...                       unknown={"conflict": {"it is not known when the invitation came": 2}})
    >>> len(report.warnings)
    1
    """

    user: str
    rows: int = 0
    accepts: int = 0
    declines: int = 0
    unlabelled: int = 0
    added: int = 0
    refreshed: int = 0
    still_open: int = 0
    live: int = 0
    entries: int = 0
    arrivals: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know before relying on these rows, a few sentences each."""
        if not self.rows:
            return (NO_INVITATIONS,)
        return (NO_DECLINES,) * (not self.declines) + (NO_ACCEPTS,) * (not self.accepts)

    def __str__(self) -> str:
        lines = [
            f"{self.user}: {self.rows} past invitations: {self.accepts} accepted, {self.declines} declined, "
            f"{self.unlabelled} without such an answer.",
            f"{self.added} are new, {self.refreshed} have changed; {self.still_open} are still open and left for the "
            f"assistant; {self.live} are in its own record already; {self.entries} calendar entries are stored.",
        ]
        came = [f"  {n} {ARRIVALS[how]}" for how, n in sorted(self.arrivals.items(), key=lambda pair: -pair[1])]
        lines += ["When they came is known:", *came] if came else []
        gaps = [
            f"  {name.replace('_', ' ')}: {n / self.rows:.0%} ({n} rows: {why})"
            for name in ALL_FEATURES
            for why, n in sorted(self.unknown.get(name, {}).items(), key=lambda pair: (-pair[1], pair[0]))
        ]
        lines += ["Could not be known:", *gaps] if gaps else []
        return "\n".join([*lines, *self.warnings])
