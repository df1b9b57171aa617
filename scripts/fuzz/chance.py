"""Fuzzing by random changes, in a child process that is started again where an input ends it.

The input that is being tried, and how many were before it, stand in a file that parent and child have in memory, so an
input that ends the process is known and costs no more than itself.
"""

from __future__ import annotations

import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

from scripts.fuzz.targets import check_seeds, timed

_HEAD = struct.Struct("<QI")
_ROOM = 1 << 20
# Seconds of the processor after which an input that has not come back ends the process.
_HANGS = 20
_MOST_MEMORY = 1 << 30
# Addresses, of which libraries take some gibibytes without ever using them.
_MOST_ADDRESSES = 8 << 30
_TOO_MUCH_MEMORY = 3
# Of a child that an exception ended: inputs raise none that is not caught.
_NEVER_BEGAN = 1
# Inputs that were read, and are changed further.
_MOST_KEPT, _LONGEST_KEPT = 256, 1 << 14


def fenced(target: str, n_executions: int) -> None:
    """Try so many changed seeds; what ends a child is a finding, and the next one goes on."""
    findings = Path(".fuzz", f"{target}-findings")
    findings.mkdir(parents=True, exist_ok=True)
    current, began, n_done, n_deaths = findings / "current", time.monotonic(), 0, 0
    current.write_bytes(bytes(_ROOM))
    while n_done < n_executions:
        command = [sys.executable, "-m", "scripts.fuzz.chance", target, str(n_executions - n_done), str(time.time_ns())]
        # One thread is enough for inputs of some kilobytes.
        environment = os.environ | {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
        told = subprocess.run(command, capture_output=True, errors="replace", text=True, env=environment)
        print(told.stdout, end="", flush=True)
        if told.returncode == _NEVER_BEGAN:
            sys.exit(told.stderr)
        n_before, length = _HEAD.unpack(current.read_bytes()[: _HEAD.size])
        n_done += n_before
        if told.returncode:
            n_done += 1
            n_deaths += told.returncode != _TOO_MUCH_MEMORY
            path = findings / f"ended-{time.time_ns()}"
            path.write_bytes(current.read_bytes()[_HEAD.size : _HEAD.size + length])
            print(f"{path}: exit status {told.returncode}", flush=True)
    current.unlink()
    seconds = time.monotonic() - began
    print(f"{target}: {n_done:,} executions in {seconds:,.0f} s, {n_deaths} of which ended the process", flush=True)


def changed(rng: random.Random, pool: list[bytes]) -> bytes:
    """An input with up to eight changes: bits, bytes, numbers and pieces that are put in, taken out or written over."""
    data = bytearray(rng.choice(pool))
    for _ in range(rng.choice((1, 1, 2, 3, 5, 8))):
        place, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 16, 64))
        way = rng.randrange(6)
        if way == 0 and place < len(data):
            data[place] ^= 1 << rng.randrange(8)
            continue
        other = rng.choice(pool)
        start = rng.randrange(len(other) + 1)
        pieces = (other[start : start + length], rng.randbytes(length), b"\0" * length, b"\xff" * length, b"")
        data[place : place + rng.choice((0, length))] = pieces[max(way - 1, 0)]
    return bytes(data)


def by_chance(target: str, n_executions: int, seed: int) -> None:
    """Try changed seeds in this process; those that are read are changed further."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rng, findings = random.Random(seed), Path(".fuzz", f"{target}-findings")
    with (findings / "current").open("r+b") as file:
        current = mmap.mmap(file.fileno(), _ROOM)
    _HEAD.pack_into(current, 0, 0, 0)
    seeds = check_seeds(target)
    pool = list(seeds)
    for n_before in range(n_executions):
        data = changed(rng, pool)[: _ROOM - _HEAD.size]
        current[_HEAD.size : _HEAD.size + len(data)] = data
        _HEAD.pack_into(current, 0, n_before, len(data))
        signal.setitimer(signal.ITIMER_PROF, _HANGS)
        try:
            read = timed(target, data)
        except Exception as fault:
            path = findings / f"{type(fault).__name__}-{seed}-{n_before}"
            path.write_bytes(data)
            print(f"{path}: {fault}", flush=True)
            read = False
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > _MOST_MEMORY >> 10:
            sys.exit(_TOO_MUCH_MEMORY)
        if read and len(data) < _LONGEST_KEPT:
            if len(pool) < _MOST_KEPT:
                pool.append(data)
            else:
                pool[rng.randrange(len(seeds), _MOST_KEPT)] = data
    _HEAD.pack_into(current, 0, n_executions, 0)


if __name__ == "__main__":
    by_chance(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
