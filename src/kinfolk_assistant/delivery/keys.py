"""The key for what must not be read where it is kept, and for links that nobody else can make.

It lives in a file of its own, beside the ledger unless the settings say otherwise (``key_file``), that only its owner
can read: a copy of the ledger alone gives no password away. The file has one key a line. The first seals and signs; the
others still open what was sealed by them, so that a key is renewed by putting a new one on top, sealing everything
anew, and taking the others away.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from kinfolk_assistant.delivery.files import write_whole


class Keys:
    """The keys of one assistant.

    Examples
    --------
    >>> keys = Keys([Fernet.generate_key().decode()])
    >>> sealed = keys.seal("ann@example.org imap", "pässword")
    >>> keys.unseal("ann@example.org imap", sealed)
    'pässword'
    >>> keys.is_signed("a link", keys.sign("a link")), keys.is_signed("another", keys.sign("a link"))
    (True, False)
    """

    def __init__(self, keys: Sequence[str]) -> None:
        try:
            self._sealers = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            raise ValueError("The key file holds a line that is no key; 'admin new-key' makes one.") from None
        # A key of their own for links, so that neither use tells anything about the other.
        self._signers = [hmac.new(key.encode(), b"links", sha256).digest() for key in keys]

    def seal(self, name: str, secret: str) -> str:
        """Encrypt a secret under a name; sealed under another name, it cannot be opened by mistake or by malice."""
        return self._sealers.encrypt(json.dumps([name, secret]).encode()).decode()

    def unseal(self, name: str, sealed: str) -> str:
        """Open what was sealed under a name.

        Raises
        ------
        ValueError
            If it was sealed by a key that is no longer there, or under another name.
        """
        try:
            found, secret = json.loads(self._sealers.decrypt(sealed.encode()))
        except (InvalidToken, ValueError):
            raise ValueError("A stored password was sealed by a key that is not in the key file.") from None
        if found != name:
            raise ValueError("A stored password is not where it was stored.")
        return str(secret)

    def sign(self, text: str) -> str:
        """Give the signature of a text."""
        return hmac.new(self._signers[0], text.encode(), sha256).hexdigest()

    def is_signed(self, text: str, signature: str) -> bool:
        """Whether a signature is that of a text, by any of the keys."""
        made = (hmac.new(key, text.encode(), sha256).hexdigest() for key in self._signers)
        return any(hmac.compare_digest(one.encode(), signature.encode()) for one in made)


def read_keys(path: Path) -> Keys:
    """Read the key file, or make one with a new key where there is none.

    Raises
    ------
    ValueError
        If it cannot be used, or others can read it.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        write_whole(path, Fernet.generate_key() + b"\n")
    except FileExistsError:
        pass
    except OSError as error:
        raise ValueError(f"The key file {path} cannot be made: {error.strerror}.") from None
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise ValueError(f"The key file {path} can be read by others; say chmod 600 {path}.")
        lines = path.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ValueError(f"The key file {path} cannot be read: {reason}.") from None
    if not lines:
        raise ValueError(f"The key file {path} is empty; take it away, and a new one is made.")
    return Keys(lines)


def add_key(path: Path) -> None:
    """Put a new key on top of the key file; the others stay below it."""
    read_keys(path)
    write_whole(path, Fernet.generate_key() + b"\n" + path.read_bytes())


def keep_first_key(path: Path) -> None:
    """Take all keys but the first away, once everything is sealed by that one."""
    write_whole(path, path.read_bytes().split()[0] + b"\n")
