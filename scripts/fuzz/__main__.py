"""Fuzz one target: by coverage with atheris where it is installed, else by random changes of the seeds.

What compiled libraries read (CSV and Parquet by polars, sound by libsndfile) is fuzzed by changes of the seeds anyway,
since their coverage cannot be seen from here.

    python -m scripts.fuzz TARGET [SECONDS]

New inputs are kept in .fuzz/TARGET, findings in .fuzz/TARGET-findings. Whatever takes over a second, or over a gibibyte
of memory, is a finding like any exception that is no refusal.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from pathlib import Path

from scripts.fuzz.targets import SEEDS, TARGETS, ask

SLOW = 1.0
# Addresses, of which libraries take some gibibytes without ever using them.
_MOST_ADDRESSES = 8 << 30
_BY_COVERAGE = ("load", "bif", "icalendar")
_INSTRUMENTED = ["kinfolk.posterior", "kinfolk.networks.answers.bif", "kinfolk_assistant.reading", "icalendar"]


def _timed(target: str, data: bytes) -> None:
    began = time.process_time()
    ask(target, data)
    spent = time.process_time() - began
    if spent > SLOW:
        raise RuntimeError(f"{spent:.1f} s for {len(data):,} bytes")


def by_coverage(target: str, seconds: int) -> None:
    """Let libFuzzer look for inputs that reach new code."""
    import atheris

    with atheris.instrument_imports(include=_INSTRUMENTED):
        import kinfolk.networks.answers.bif
        import kinfolk.posterior  # noqa: F401
        import kinfolk_assistant.reading.mail  # noqa: F401
    kept, findings = Path(".fuzz", target), Path(".fuzz", f"{target}-findings")
    for folder in (kept, findings):
        folder.mkdir(parents=True, exist_ok=True)
    for seed in sorted((SEEDS / target).iterdir()):
        ask(target, seed.read_bytes())  # what is imported or compiled at first is no fault of an input
    limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=1024", "-max_len=16384"]
    options = ["-print_final_stats=1", f"-artifact_prefix={findings}/", *limits, str(kept), str(SEEDS / target)]
    atheris.Setup([sys.argv[0], *options], lambda data: _timed(target, data))
    atheris.Fuzz()


def fenced(target: str, seconds: int) -> None:
    """Change seeds at random in child processes: what ends one of them is a finding, and the next one goes on."""
    ends, n_runs, n_deaths = time.monotonic() + seconds, 0, 0
    current = Path(".fuzz", f"{target}-findings", "current")
    while (left := round(ends - time.monotonic())) > 0:
        command = [sys.executable, "-m", "scripts.fuzz", target, str(left), str(n_deaths)]
        told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        n_runs += sum(int(line.split()[1]) for line in told.stdout.splitlines() if line.startswith("executions"))
        print("".join(line + "\n" for line in told.stdout.splitlines() if "findings" in line), end="", flush=True)
        if told.returncode:
            n_deaths += 1
            current.replace(current.with_name(f"died-{n_deaths}"))
            print(f"{current.with_name(f'died-{n_deaths}')}: exit status {told.returncode}", flush=True)
    print(f"{target}: {n_runs:,} executions, {n_deaths} of which ended the process")


def by_chance(target: str, seconds: int, seed: int) -> None:
    """Change, cut, repeat and join the seeds at random."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
    rng, began, n_runs = random.Random(seed), time.monotonic(), 0
    seeds = [seed.read_bytes() for seed in sorted((SEEDS / target).iterdir())]
    findings = Path(".fuzz", f"{target}-findings")
    findings.mkdir(parents=True, exist_ok=True)
    for good in seeds:
        ask(target, good)
    while time.monotonic() - began < seconds:
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 8)):
            place, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 16, 64))
            some = rng.choice(seeds)
            start = rng.randrange(len(some))
            other = rng.choice((rng.randbytes(length), some[start : start + length], b"\0" * length, b"\xff" * length))
            data[place : place + rng.choice((0, length))] = other
        (findings / "current").write_bytes(data)
        try:
            _timed(target, bytes(data))
        except Exception as fault:
            path = findings / f"{type(fault).__name__}-{n_runs}"
            path.write_bytes(bytes(data))
            print(f"{path}: {fault}", flush=True)
        n_runs += 1
        if n_runs % 100 == 0:
            print("executions 100", flush=True)


def main() -> None:
    """Fuzz what the command line names."""
    target = sys.argv[1]
    if target not in TARGETS:
        sys.exit(f"{target} is not one of {', '.join(TARGETS)}")
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    try:
        import atheris  # noqa: F401
    except ImportError:
        guided = False
    else:
        guided = target in _BY_COVERAGE
    if len(sys.argv) > 3:
        by_chance(target, seconds, int(sys.argv[3]))
    else:
        (by_coverage if guided else fenced)(target, seconds)


if __name__ == "__main__":
    main()
