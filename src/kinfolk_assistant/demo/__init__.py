"""A made-up team with calendars and invitations, to try the assistant on."""
