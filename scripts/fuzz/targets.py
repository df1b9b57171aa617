"""What is fuzzed: each target takes bytes, and may refuse them in a sentence; anything else it raises is a finding."""

from __future__ import annotations

import io
import os
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

SEEDS = Path(__file__).parent / "seeds"
# Seconds of the processor that an input may take.
SLOW = 1.0
# How a reader says no. Everything that is not one of these is a fault.
REFUSALS = (ValueError, TypeError, OSError, ImportError)
_FOLDER = tempfile.mkdtemp(prefix="kinfolk-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


def _file(data: bytes, ending: str) -> Path:
    path = Path(_FOLDER, f"input{ending}")
    path.write_bytes(data)
    return path


@cache
def _members() -> dict[str, bytes]:
    with zipfile.ZipFile(SEEDS / "load" / "clustered.kin") as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def load(data: bytes) -> None:
    """A model file; half of the inputs are its model.json or one array, in an archive that is otherwise in order."""
    import kinfolk

    if data[:2] != b"PK" and len(data) > 1:
        names = sorted(_members())
        changed = _members() | {names[data[0] % len(names)]: data[1:]}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, content in changed.items():
                archive.writestr(name, content)
        data = packed.getvalue()
    kinfolk.load(_file(data, ".kin"))


def bif(data: bytes) -> None:
    """A Bayes net in BIF."""
    from kinfolk.networks.answers.bif import parse_bif

    parse_bif(data.decode("utf-8", "replace"))


def icalendar(data: bytes) -> None:
    """Invitations, as a file and as a mail."""
    from kinfolk_assistant.reading.calendars import read_calendar
    from kinfolk_assistant.reading.mail import read_mail

    (read_mail if data[:1] in b"FRM" else read_calendar)(data)


def csv(data: bytes) -> None:
    """A table in CSV."""
    from kinfolk.tasks.streaming.scanning import read_file

    read_file(io.BytesIO(data))


def parquet(data: bytes) -> None:
    """A table in Parquet."""
    from kinfolk.tasks.streaming.scanning import read_file

    read_file(_file(data, ".parquet"))


def sound(data: bytes) -> None:
    """A recording."""
    from kinfolk.datasets.sound.audio import read_recording

    read_recording(_file(data, ".wav"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "load": load,
    "bif": bif,
    "icalendar": icalendar,
    "csv": csv,
    "parquet": parquet,
    "sound": sound,
}


def ask(target: str, data: bytes) -> bool:
    """Hand bytes to a target, and tell whether it read them; what it refuses in a sentence is well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[target](data)
        except REFUSALS as refusal:
            if not str(refusal):
                raise RuntimeError(f"{type(refusal).__name__} says nothing") from refusal
            return False
    return True


def check_seeds(target: str) -> list[bytes]:
    """The seeds of a target; all are read, but those that were findings once and are called ``refused-…``."""
    seeds = []
    for path in sorted((SEEDS / target).iterdir()):
        seeds.append(path.read_bytes())
        if ask(target, seeds[-1]) == path.name.startswith("refused-"):
            raise RuntimeError(f"{path.name} is {'read' if path.name.startswith('refused-') else 'refused'}")
    return seeds


def timed(target: str, data: bytes) -> bool:
    """Hand bytes to a target; to take long is a fault."""
    began = time.process_time()
    read = ask(target, data)
    spent = time.process_time() - began
    if spent > SLOW:
        raise RuntimeError(f"{spent:.1f} s for {len(data):,} bytes")
    return read
