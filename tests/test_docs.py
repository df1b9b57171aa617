"""What the documentation points at is there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLACE = r"`(kinfolk[\w.]*):(\w+)`"
EQUATIONS = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
ROWS = [row for row in re.findall(r"^\| (.*) \|$", EQUATIONS, flags=re.MULTILINE) if row[:3] not in ("---", "equ")]
PLACES = re.findall(PLACE, EQUATIONS)


def test_every_row_of_the_equation_index_names_a_place():
    assert [row for row in ROWS if not re.search(PLACE, row)] == []


def test_all_papers_are_in_the_equation_index():
    assert {paper for row in ROWS for paper in re.findall(r"\b00\d\b", row.partition("|")[0])} == {
        "000",
        "001",
        "002",
        "003",
        "004",
    }


@pytest.mark.parametrize(("module", "name"), PLACES)
def test_every_equation_has_a_place_in_the_code(module, name):
    assert hasattr(import_module(module), name)


EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in (ROOT / "README.md", ROOT / "docs" / "guide.md")
    for number, block in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    )
]


@pytest.mark.parametrize("block", EXAMPLES)
def test_the_documentations_python_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "example", "exec"), {})


def test_the_readme_names_the_two_commands_and_its_picture_is_there():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", readme)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).is_file()
