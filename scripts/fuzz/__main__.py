"""Fuzz one target: by coverage with atheris where it is installed, else by random changes of the seeds.

What compiled libraries read (CSV and Parquet by polars, sound by libsndfile) is fuzzed by changes of the seeds anyway,
since their coverage cannot be seen from here.

    python -m scripts.fuzz TARGET [EXECUTIONS] [chance]

New inputs are kept in .fuzz/TARGET, findings in .fuzz/TARGET-findings. Whatever takes over a second, or over a gibibyte
of memory, is a finding like any exception that is no refusal.
"""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.fuzz.chance import fenced
from scripts.fuzz.targets import SEEDS, TARGETS, check_seeds, timed

EXECUTIONS = 20_000
_BY_COVERAGE = ("load", "bif", "icalendar")
_INSTRUMENTED = ["kinfolk.posterior", "kinfolk.networks.answers.bif", "kinfolk_assistant.reading", "icalendar"]


def by_coverage(target: str, n_executions: int) -> None:
    """Let libFuzzer look for inputs that reach new code."""
    import atheris

    with atheris.instrument_imports(include=_INSTRUMENTED):
        import kinfolk.networks.answers.bif
        import kinfolk.posterior  # noqa: F401
        import kinfolk_assistant.reading.mail  # noqa: F401
    kept, findings = Path(".fuzz", target), Path(".fuzz", f"{target}-findings")
    for folder in (kept, findings):
        folder.mkdir(parents=True, exist_ok=True)
    check_seeds(target)  # what is imported or compiled at first is no fault of an input
    limits = [f"-runs={n_executions}", "-timeout=20", "-rss_limit_mb=1024", "-max_len=16384"]
    options = ["-print_final_stats=1", f"-artifact_prefix={findings}/", *limits, str(kept), str(SEEDS / target)]
    atheris.Setup([sys.argv[0], *options], lambda data: timed(target, data))
    atheris.Fuzz()


def main() -> None:
    """Fuzz what the command line names."""
    target = sys.argv[1]
    if target not in TARGETS:
        sys.exit(f"{target} is not one of {', '.join(TARGETS)}")
    n_executions = int(sys.argv[2]) if len(sys.argv) > 2 else EXECUTIONS
    try:
        import atheris  # noqa: F401
    except ImportError:
        guided = False
    else:
        guided = target in _BY_COVERAGE and "chance" not in sys.argv[3:]
    (by_coverage if guided else fenced)(target, n_executions)


if __name__ == "__main__":
    main()
