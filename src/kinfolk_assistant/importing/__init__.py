"""A calendar and its mails become the past that the assistant learns from."""
