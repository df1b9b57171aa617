"""How answers leave and invitations come: files, mail and CalDAV servers, chosen by a settings file."""
