"""Calendars at Google and Microsoft 365, by those services' own interfaces and OAuth 2."""
