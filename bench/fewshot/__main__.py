"""Run cells until the time is over, then write the page."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from time import perf_counter

RESULTS = Path(__file__).with_name("results")
SIZES = (1, 2, 4, 8, 16, 32, 64)


def main(arguments: list[str] | None = None) -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    from bench.fewshot import cells, marks, page, speed
    from bench.fewshot.models import ours
    from bench.fewshot.peers import missing, peers
    from bench.fewshot.sets import Rows, listed, load
    from bench.fewshot.splits import draw, keep

    asked = _parser(list(listed())).parse_args(arguments)
    models = ours() | peers()
    for name, known in (("sets", list(listed())), ("models", list(models))):
        unknown = [value for value in getattr(asked, name) or () if value not in known]
        if unknown:
            sys.exit(f"there is no {name[:-1]} {unknown[0]!r}: the known ones are {', '.join(known)}")
    if missing():
        print(f"skipped, not installed: {', '.join(missing())}", flush=True)
    sets = {name: entry for name, entry in listed().items() if not asked.sets or name in asked.sets}
    chosen = {name: model for name, model in models.items() if not asked.models or name in asked.models}
    path = asked.out / "results.csv"
    if asked.marks:
        marks.run(asked.out / "marks.csv", asked.minutes, asked.splits, asked.models)
        sets = {}
    if asked.speed:
        speed.run(asked.out / "speed.csv", asked.minutes)
        sets = {}
    done, loaded, start = cells.read_done(path), dict[str, Rows | None](), perf_counter()
    warnings.simplefilter("ignore")
    for cell in cells.in_order(sets, asked.sizes, asked.splits, chosen):
        if perf_counter() - start > 60.0 * asked.minutes:
            print("the time is over; the next run goes on from here", flush=True)
            break
        if cell in done:
            continue
        if cell.set not in loaded:
            try:
                loaded[cell.set] = load(sets[cell.set])
            except FileNotFoundError as error:
                print(f"skipped: {error}", flush=True)
                loaded[cell.set] = None
        rows = loaded[cell.set]
        split = None if rows is None else draw(rows, cell.set, cell.size, cell.split)
        if rows is None or split is None:
            continue
        if cell.size:
            keep(split, asked.out / "splits" / f"{cell.set.replace(' ', '-')}-{cell.size}-{cell.split}.csv.gz")
        found = cells.run(cell, chosen[cell.model], rows, split)
        cells.add(path, found)
        print(
            *cell, found[0].get("error") or f"{found[0].get('log_loss', found[0].get('squared_error')):.4f}", flush=True
        )
    if path.exists():
        where = RESULTS.parent.with_name("FEWSHOT.md") if asked.out == RESULTS else asked.out / "FEWSHOT.md"
        page.write(page.read(path), list(ours()), where, asked.out)
        print(where)


def _parser(sets: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench fewshot", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="after which no new cell is begun")
    parser.add_argument("--sets", nargs="+", help=", ".join(sets))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="rows a task to learn from")
    parser.add_argument("--models", nargs="+", help="by the names in the page")
    parser.add_argument("--splits", type=int, default=10, help="how many of each set and size")
    parser.add_argument("--marks", action="store_true", help="protocols of earlier studies instead of cells")
    parser.add_argument("--speed", action="store_true", help="time to fit beside CatBoost's instead of cells")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of results.csv and splits")
    return parser


if __name__ == "__main__":
    main()
