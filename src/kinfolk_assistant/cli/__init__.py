"""Answer meeting invitations on behalf of a team.

The command line, ``kinfolk assistant …``, found by kinfolk through its entry point.
"""

from kinfolk_assistant.cli.app import app

__all__ = ["app"]
