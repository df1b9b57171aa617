"""Engines that count Parquet files for ``kinfolk fit``: DuckDB here, Dask here or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

SECONDS_TO_ANSWER = 10.0


@contextmanager
def opened(path: Path, engine: str, scheduler: str | None, source: Any) -> Iterator[Any]:
    """A table as an engine has it; the source itself where rows are counted here.

    Parameters
    ----------
    path : Path
        A Parquet file, or a folder of them; a cluster must find it by this name.
    engine : {"local", "duckdb", "dask"}
        Who counts.
    scheduler : str, optional
        Address of a Dask cluster; without one, threads of this process do the work.
    source : Scan
        The same table, read here.
    """
    if engine == "local":
        yield source
        return
    if not path.is_dir() and path.suffix.lower() != ".parquet":
        raise ValueError(f"{path} cannot be counted by --engine {engine}: Parquet files, or a folder of them, can")
    files = sorted(map(str, path.rglob("*.parquet"))) if path.is_dir() else [str(path)]
    with ExitStack() as stack:
        try:
            yield _duckdb_relation(files) if engine == "duckdb" else _dask_frame(files, scheduler, stack)
        except ModuleNotFoundError as missing:
            raise ImportError(
                f"--engine {engine} needs a package that is not here ({missing.name}): pip install kinfolk[{engine}]"
            ) from None


def _duckdb_relation(files: list[str]) -> Any:
    import duckdb

    return duckdb.read_parquet(files, hive_partitioning=True, union_by_name=False)


def _dask_frame(files: list[str], scheduler: str | None, stack: ExitStack) -> Any:
    import dask.dataframe

    if scheduler is not None:
        from distributed import Client

        try:
            stack.enter_context(Client(scheduler, timeout=SECONDS_TO_ANSWER))  # type: ignore[no-untyped-call]
        except (OSError, TimeoutError, ValueError) as error:
            raise ValueError(f"no Dask scheduler answers at {scheduler} ({error})") from None
    # Whole numbers beside missing values stay whole.
    return dask.dataframe.read_parquet(files, dtype_backend="numpy_nullable")
