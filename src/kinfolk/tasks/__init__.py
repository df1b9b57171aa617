"""The only door for a user's data: tables and arrays go in, coded rows and counts come out."""
