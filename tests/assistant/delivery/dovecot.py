"""Dovecot as its own process, with one mailbox; tests that need it are skipped where it is not installed."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kinfolk_assistant.delivery.imap_mailbox import Mailbox
from tests.assistant.delivery.servers import free_port, wait_for

DOVECOT = shutil.which("dovecot") or shutil.which("dovecot", path="/usr/sbin:/usr/local/sbin")

_SETTINGS = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
first_valid_uid = 1
default_internal_user = {user}
default_login_user = {user}
default_internal_group = {group}
mail_location = maildir:{folder}/mail/%u
mailbox_list_index = no
service anvil {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service stats {{
  chroot =
}}
passdb {{
  driver = passwd-file
  args = {folder}/users
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}/mail/%u
}}
"""


class Server(NamedTuple):
    """A running server, and the folder that its mailbox is in."""

    port: int
    folder: Path
    uid: int
    gid: int

    def mailbox(self, password: str = "secret", folder: str = "INBOX") -> Mailbox:
        return Mailbox.from_url(f"imap+plain://127.0.0.1:{self.port}/{folder}", "ann", password)

    def deliver(self, mail: bytes) -> None:
        """Put a mail into the mailbox, as a mail server delivers it (Maildir)."""
        root = self.folder / "mail" / "ann"
        for name in ("", "tmp", "new", "cur"):
            (root / name).mkdir(parents=True, exist_ok=True)
            os.chown(root / name, self.uid, self.gid)
        name = f"{time.time_ns()}.M{os.getpid()}.here"
        (root / "tmp" / name).write_bytes(mail)
        os.chown(root / "tmp" / name, self.uid, self.gid)
        (root / "tmp" / name).rename(root / "new" / name)

    def unseen(self) -> int:
        """How many mails nobody has opened."""
        return len(list((self.folder / "mail" / "ann" / "new").iterdir()))


@contextmanager
def running_dovecot(folder: Path) -> Iterator[Server]:
    """Start it; as root for a user without rights, else for oneself."""
    assert DOVECOT is not None
    who = pwd.getpwnam("nobody" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name)
    group = grp.getgrgid(who.pw_gid).gr_name
    for name in ("", "run", "state", "mail"):
        (folder / name).mkdir(exist_ok=True)
        os.chown(folder / name, who.pw_uid, who.pw_gid)
    for above in (folder, *folder.parents):
        if above != Path("/") and above.stat().st_uid == os.getuid():
            above.chmod(above.stat().st_mode | 0o011)
    (folder / "users").write_text("ann:{PLAIN}secret::::::\n")
    port = free_port()
    settings = _SETTINGS.format(folder=folder, port=port, user=who.pw_name, group=group)
    (folder / "dovecot.conf").write_text(settings)
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen([DOVECOT, "-F", "-c", folder / "dovecot.conf"], stdout=out, stderr=out)
    try:
        wait_for(port, process, folder / "out")
        yield Server(port, folder, who.pw_uid, who.pw_gid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
