"""One self-contained HTML page about a fitted model, and numbered checks in plain words.

findings     what a fitted model holds, as one value; ``naive_bayes`` and its neighbours read one family each
held_out     rows that are given: models compared on them, losses of tasks, calibration; ``held_out_networks`` and
             ``held_out_sequences`` where there is no label
numbered_checks  the numbered checks
account      all of it together, for JSON too
page         the page, with ``summary`` (its first screen), ``families`` (sections of one family of models), ``layout``
             (frame and tables), ``drawing`` (SVG) and ``markup`` (escaping)
making       reports as values; ``comparing`` of several models
"""

from typing import TYPE_CHECKING

from kinfolk.lazy import lazily

if TYPE_CHECKING:
    from kinfolk.reporting.comparing import compare
    from kinfolk.reporting.making import Report, checks, notebook_summary, report

__all__ = ["Report", "checks", "compare", "notebook_summary", "report"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "Report": "making",
        "checks": "making",
        "compare": "comparing",
        "notebook_summary": "making",
        "report": "making",
    },
)
