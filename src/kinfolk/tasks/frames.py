"""Results as a table of the kind that the user handed in."""

from __future__ import annotations

from typing import Any

from kinfolk.tasks.table import Backend


def make_frame(columns: dict[str, Any], backend: Backend) -> Any:
    """Build a frame of the named library.

    Examples
    --------
    >>> make_frame({"task": ["ann"], "rate": [0.5]}, "pandas").to_dict("list")
    {'task': ['ann'], 'rate': [0.5]}
    """
    import narwhals.stable.v2 as nw

    if backend != "pandas":
        # Only pandas has columns of mixed types; elsewhere such tasks or labels are shown as text.
        columns = {
            name: [str(v) for v in values] if len({type(v) for v in values} - {type(None)}) > 1 else values
            for name, values in columns.items()
        }
    try:
        return nw.from_dict(columns, backend=backend).to_native()
    except ModuleNotFoundError:  # a model fitted where another library was installed
        return nw.from_dict(columns, backend="polars").to_native()
