"""``kinfolk warm-up``: compile all kernels beforehand, so that no fit has to wait for it."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated, NamedTuple

import typer

EXAMPLE = """\b
Example:
  kinfolk warm-up
  NUMBA_CACHE_DIR=/opt/kernels kinfolk warm-up --jobs 4"""


class Warmth(NamedTuple):
    """How many kernels were compiled, counted for each types of arguments, and where they are; None: nowhere."""

    n_compiled: int
    folder: Path | None


def command(
    jobs: Annotated[int, typer.Option(metavar="N", help="Processes to use; -1: as many as there are cores.")] = -1,
) -> None:
    """Compile all numerical kernels beforehand.

    The first fit of every kind has to compile its kernels, which takes seconds. This does it for all of them, for
    example when a container is built. Compiled kernels are kept beside the package, or in the user's cache folder where
    that cannot be written; NUMBA_CACHE_DIR names another folder.
    """
    start = perf_counter()
    found = warm_up(jobs, verbose=sys.stderr.isatty())
    if found.folder is None:
        raise OSError("nothing can be kept: set NUMBA_CACHE_DIR to a folder that can be written to")
    what = f"compiled {found.n_compiled} kernels" if found.n_compiled else "all kernels were compiled already"
    typer.echo(f"{what} in {perf_counter() - start:.0f} s; they are in {found.folder}")


def warm_up(n_jobs: int = -1, verbose: bool = False) -> Warmth:
    """Compile all kernels and keep them, side by side in processes.

    Parameters
    ----------
    n_jobs : int, default=-1
        Number of processes; -1 for as many as there are cores.
    verbose : bool, default=False
        Whether to show progress on standard error.

    Returns
    -------
    Warmth
        How many had to be compiled, and the folder that has them.
    """
    from joblib import Parallel, delayed

    import kinfolk
    from kinfolk.cli.small_fits import GROUPS
    from kinfolk.maths.kernel_cache import place_to_write
    from kinfolk.progress import progress_bar

    work = Parallel(n_jobs=n_jobs, backend="loky", batch_size=1, return_as="generator_unordered")
    n_compiled = 0
    with progress_bar("Compiling", len(GROUPS), verbose) as advance:
        for count in work(delayed(_compile)(group) for group in GROUPS):
            n_compiled += count
            advance(1)
    package = Path(kinfolk.__file__).parent
    folder = place_to_write(package)
    if folder is not None:
        folder = package if folder.parent == package else folder.parent
    return Warmth(n_compiled, folder)


def _compile(group: str) -> int:
    """Run the fits of a group; the number of kernels that had to be compiled meanwhile."""
    import warnings

    from kinfolk.cli.small_fits import run
    from kinfolk.maths.kernel_cache import n_compiled

    before = n_compiled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as small as they are, they cannot converge
        run(group)
    return n_compiled() - before
