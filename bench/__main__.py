"""Run every benchmark, print the table, and write it to ``bench/RESULTS.md``; with names, run and print just those.

``--checkpoint FOLDER`` keeps what each benchmark measured: a run that was stopped is started again with the same words,
and does the others alone, as long as neither the code nor the libraries have changed.

``python -m bench fewshot`` compares what is predicted, not how fast; it has options of its own (``--help``).
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from bench.measure import Comparison, shown

MODULES = (
    "startup",
    "first_minutes",
    "naive_bayes",
    "networks",
    "lica",
    "sequences",
    "many_tasks",
    "counting",
    "assistant",
)
LIBRARIES = ("kinfolk", "numpy", "numba", "scikit-learn", "scipy")


def report(results: list[Comparison]) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`: one run, one thread for every library, each peer on the same data, its data",
        "conversion timed like ours. Ratios are to the peer measured in the same run; seconds are one machine's.",
        "",
        f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
        "",
        "| job | time | peer | peer's time | ratio | wanted | first call, compilation included |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r.job} | {shown(r.seconds)} | {r.peer} | {shown(r.peer_seconds)} | {r.ratio} | {r.wanted} "
        f"| {shown(r.first_seconds)} |"
        for r in results
    ]
    return "\n".join(lines) + "\n"


def measure(names: Sequence[str], folder: str | None = None) -> list[Comparison]:
    """What benchmarks measured, now or in a run that was stopped."""
    from kinfolk.checkpoints import Checkpoint

    keep = Checkpoint(folder)
    if folder is not None:
        keep = keep.of("bench", platform.python_version(), [version(name) for name in LIBRARIES], sources())

    def run(name: str) -> list[list[Any]]:
        print(f"running bench/{name}.py ...", flush=True)
        return [list(measured) for measured in import_module(f"bench.{name}").run()]

    return [Comparison(*measured) for name in names for measured in keep.done(partial(run, name), name)]


def sources() -> str:
    """A hash of all code that is measured, and that measures."""
    import kinfolk

    found = sha256()
    for folder in (Path(kinfolk.__file__).parent, Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def main() -> None:
    if sys.argv[1:2] == ["fewshot"]:
        import_module("bench.fewshot.__main__").main(sys.argv[2:])
        return
    # One thread each, for us and for the peers; libraries read these when they are first imported.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[variable] = "1"
    # The same for JAX, and as many digits as the others have.
    os.environ |= {"NPROC": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_ENABLE_X64": "1"}
    # An empty cache, so that first calls show what compilation costs.
    os.environ["NUMBA_CACHE_DIR"] = mkdtemp(prefix="kinfolk-bench-")
    words = sys.argv[1:]
    folder = None
    if "--checkpoint" in words:
        place = words.index("--checkpoint")
        if place + 1 == len(words):
            sys.exit("--checkpoint needs the path of a folder")
        folder = words[place + 1]
        del words[place : place + 2]
    asked = words or MODULES
    unknown = [name for name in asked if name not in MODULES]
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}: the known ones are {', '.join(MODULES)}")
    text = report(measure(asked, folder))
    print(text)
    if asked == MODULES:
        Path(__file__).with_name("RESULTS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
