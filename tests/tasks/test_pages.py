"""Parquet files: no damaged one ends the process, and every good one passes, whoever wrote it and however."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from kinfolk.tasks.streaming.pages import check_pages
from kinfolk.tasks.streaming.scanning import read_file

SEEDS = Path(__file__).parents[2] / "scripts" / "fuzz" / "seeds" / "parquet"
READ = """
import sys, warnings
from pathlib import Path
from kinfolk.tasks.streaming.scanning import read_file
for line in sys.stdin:
    name, *changes = line.split()
    data = bytearray(Path(name).read_bytes())
    for change in changes:
        place, byte = change.split(":")
        data[int(place)] = int(byte)
    path = Path(sys.argv[1], "changed.parquet")
    path.write_bytes(data)
    try:
        read_file(path)
        print("read")
    except ValueError as refusal:
        print(refusal)
"""


def told_of(cases, folder):
    """What is said of each changed file, all in one process of their own, which some of them would end."""
    lines = "".join(f"{SEEDS / name} {' '.join(f'{at}:{byte}' for at, byte in changes)}\n" for name, changes in cases)
    command = [sys.executable, "-c", READ, str(folder)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout.splitlines()


def test_page_headers_with_negative_numbers_are_refused_in_a_sentence_and_do_not_end_the_process(tmp_path):
    cases = [
        ("rows.parquet", [(39, 69)]),
        ("rows.parquet", [(121, 65)]),
        ("rows.parquet", [(304, 67)]),
        ("snappy.parquet", [(41, 89)]),
        ("snappy.parquet", [(40, 25), (41, 53)]),
    ]
    told = told_of(cases, tmp_path)
    start = f"{tmp_path / 'changed.parquet'} cannot be read as a Parquet table: a page header of column chunk "
    assert [line.removeprefix(start)[1:] for line in told] == [
        *[" holds a negative number"] * 4,
        " does not say how many values follow",
    ]


def test_no_single_changed_byte_ends_the_process(tmp_path):
    n_bytes = (SEEDS / "snappy.parquet").stat().st_size
    cases = [("snappy.parquet", [(at, byte)]) for at in range(n_bytes) for byte in (0, 1, 89, 255)]
    assert len(told_of(cases, tmp_path)) == len(cases)


def make_table(n_rows):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "word": pl.Series(rng.choice(["red", "blue", None], n_rows).tolist(), dtype=pl.String),
            "long": pl.Series([f"{i:0200}" for i in range(n_rows)], dtype=pl.String),
            "whole": rng.integers(-5, 5, n_rows),
            "real": rng.normal(size=n_rows),
            "yes": rng.integers(0, 2, n_rows).astype(bool),
            "list": pl.Series([[1, 2], [], None] * (n_rows // 3), dtype=pl.List(pl.Int64)),
            "struct": pl.Series(
                [{"a": 1, "b": [None, "x"]}] * n_rows, dtype=pl.Struct({"a": pl.Int8, "b": pl.List(pl.String)})
            ),
        }
    )


@pytest.mark.parametrize("n_rows", [0, 3, 3_000])
@pytest.mark.parametrize("compression", ["zstd", "snappy", "uncompressed"])
def test_files_that_polars_writes_pass(tmp_path, n_rows, compression):
    table, path = make_table(n_rows), tmp_path / "a.parquet"
    table.write_parquet(path, compression=compression, row_group_size=1_000, data_page_size=2_000)
    check_pages(path)
    assert_frame_equal(read_file(path), table)


@pytest.mark.parametrize("n_rows", [0, 3, 3_000])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_files_that_arrow_writes_pass(tmp_path, n_rows, version, dictionary):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    how = {"data_page_version": version, "use_dictionary": dictionary, "data_page_size": 2_000, "row_group_size": 1_000}
    parquet.write_table(make_table(n_rows).to_arrow(), path, write_page_index=True, **how)
    check_pages(path)
    assert read_file(path).height == n_rows


def test_files_that_duckdb_writes_pass(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.parquet"
    duckdb.sql("select i, i % 7 as kind, 'word ' || (i % 3) as word from range(200000) as t(i)").write_parquet(
        str(path)
    )
    check_pages(path)
    assert read_file(path).height == 200_000
