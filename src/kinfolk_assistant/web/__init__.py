"""The web pages: server-rendered, usable without a script, each user behind their own sign-in."""
