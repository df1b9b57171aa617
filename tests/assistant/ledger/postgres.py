"""A PostgreSQL server of the tests' own, where its programs are installed; it refuses to run as root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """The folder of initdb and postgres; None where they are not installed, or nobody may run them."""
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    found = shutil.which("initdb")
    folders += [Path(found).resolve().parent] if found else []
    folder = next((one for one in folders if (one / "initdb").exists() and (one / "postgres").exists()), None)
    return None if os.geteuid() == 0 and _unprivileged() is None else folder


def _unprivileged() -> pwd.struct_passwd | None:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


@contextmanager
def server() -> Iterator[str]:
    """Start a server that listens in a folder only; gives the URL of its first database."""
    bin_ = programs()
    assert bin_ is not None
    user = _unprivileged() if os.geteuid() == 0 else None
    as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid)
    data = folder / "data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    started = None
    try:
        subprocess.run(
            [bin_ / "initdb", "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--no-sync"],
            check=True, **quiet, **as_user,
        )  # fmt: skip
        started = subprocess.Popen(
            [bin_ / "postgres", "-D", data, "-k", folder, "-h", "", "-F", "-c", "shared_buffers=16MB"],
            **quiet, **as_user,
        )  # fmt: skip
        url = f"postgresql://test@/postgres?host={folder}"
        _wait(url)
        yield url
    finally:
        if started is not None:
            started.terminate()
            started.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(url: str) -> None:
    import time

    import psycopg

    for _ in range(200):
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise RuntimeError("PostgreSQL did not start")


def make_database(url: str, name: str) -> str:
    """Make an empty database; its URL."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return url.replace("/postgres?", f"/{name}?")


def drop_database(url: str, name: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
