"""What the documentation points at is there."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import kinfolk

ROOT = Path(__file__).parent.parent
PAPERS = (
    "Roy (2006)",
    "Roy and Kaelbling (2007)",
    "Niculescu-Mizil and Caruana (2012)",
    "Zhang, Ghahramani and Yang (2005)",
    "Ni, Carin and Dunson (2007)",
)
OURS = "Not in the papers"
WORDS = {
    "": ("eq.", "eqs.", "equation", "equations"),
    "section": ("section", "sections", "sec.", "§"),
    "figure": ("figure", "figures"),
}
# How a module may call a paper.
NAMES = {
    "Roy (2006)": r"thesis|Roy,? \(?2006",
    "Roy and Kaelbling (2007)": r"Roy and (L\. P\. )?Kaelbling",
    "Niculescu-Mizil and Caruana (2012)": r"Niculescu-Mizil",
    "Zhang, Ghahramani and Yang (2005)": r"Zhang|LICA",
    "Ni, Carin and Dunson (2007)": r"\bNi\b",
}


class Entry(NamedTuple):
    """A row of the index: a paper, its references as they are written, and the place in the code."""

    paper: str
    references: tuple[str, ...]
    module: str
    name: str


def entries() -> list[Entry]:
    """Rows of all tables of the index, each of which stands under the heading of a paper."""
    found, paper = [], ""
    for line in (ROOT / "docs" / "equations.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            paper = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith(("| ---", "| equation")):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            (module, name) = re.fullmatch(r"`(kinfolk[\w.]*):(\w+)`", cells[1]).groups()
            about = re.sub(r"\(([^()]*[^\d()–][^()]*)\)", "", cells[0])  # words in brackets explain, numbers refer
            references = () if paper == OURS else tuple(part.strip() for part in about.split(","))
            found.append(Entry(paper, references, module, name))
    return found


INDEX = entries()


def numbers_in(reference: str) -> list[str]:
    """The equations, sections or figures that a reference names, those of a range one by one.

    >>> numbers_in("A.43–A.44"), numbers_in("(2)–(4)"), numbers_in("figure 2-5"), numbers_in("section 3.1")
    (['A.43', 'A.44'], ['(2)', '(3)', '(4)'], ['figure 2-5'], ['section 3.1'])
    """
    ends = re.fullmatch(r"(\(?(?:\w+\.)*)(\d+)(\)?)–\(?(?:\w+\.)*(\d+)\)?", reference)
    if ends is None:
        return [reference]
    before, first, after, last = ends.groups()
    return [f"{before}{number}{after}" for number in range(int(first), int(last) + 1)]


def cites(text: str, reference: str) -> bool:
    """Whether a text has one of the numbers, alone or in a list, and not as the beginning of another.

    Numbers with a dot stand for themselves; others need their word, such as "eq. 7 and 8", "§3.1" or "figures 6 and 7".
    """
    for number in numbers_in(reference):
        word, _, bare = number.rpartition(" ")
        bare = bare.strip("()")
        if re.search(rf"(?<![\w.]){re.escape(number)}(?![\d])", text):
            return True
        words = WORDS.get(word, ())
        listed = rf"(?:{'|'.join(map(re.escape, words))})[\s§\d.,()–-]*(?:and |to )?[\s§\d.,()–-]*"
        if words and re.search(rf"{listed}(?<![\d.]){re.escape(bare)}(?![\d]|\.\d)", text):
            return True
    return False


def test_numbers_of_ranges_are_found_and_beginnings_of_others_are_not():
    assert cites("equations A.43–A.46", "A.46–A.47")
    assert cites("as (3) has it", "(2)–(4)")
    assert not cites("equation A.431", "A.43")
    assert not cites("equation (12)", "(2)")
    assert cites("(Ni et al. 2007, eqs. 11 and 12)", "(12)")
    assert cites("eq. 1–9", "(9)")
    assert cites("by §3.1 of the paper", "section 3.1")
    assert cites("sections 2 and 3.2", "section 3.2")
    assert not cites("section 3.12", "section 3.1")
    assert not cites("section 3.1, with 5 chains", "section 5")


def test_the_equation_index_covers_every_paper():
    assert [entry.paper for entry in INDEX if entry.paper not in (*PAPERS, OURS)] == []
    counts = {paper: sum(entry.paper == paper for entry in INDEX) for paper in PAPERS}
    assert min(counts.values()) >= 5, counts


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: f"{entry.paper} {entry.name}")
def test_every_equation_has_a_function_whose_module_cites_it(entry):
    if entry.module.startswith("kinfolk_assistant"):
        for needed in ("icalendar", "sqlalchemy"):
            pytest.importorskip(needed)
    module = import_module(entry.module)
    assert hasattr(module, entry.name)
    home = import_module(getattr(getattr(module, entry.name), "__module__", entry.module))
    text = " ".join(inspect.getsource(home).split())
    assert [reference for reference in entry.references if not cites(text, reference)] == []
    assert not entry.references or re.search(NAMES[entry.paper], text)


class Block(NamedTuple):
    """A block of Python, and what stands below it as what it prints; None where nothing does."""

    code: str
    printed: str | None


def blocks_of(page: Path) -> list[Block]:
    found = re.findall(
        r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    return [Block(code, printed or None) for code, printed in found]


WRITTEN = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)]
# Every block of these stands for itself; the blocks of other pages follow from each other.
SINGLE = (ROOT / "README.md", ROOT / "docs" / "guide.md")
EXAMPLES = [
    *(pytest.param([block], id=f"{page.name}-{at}") for page in SINGLE for at, block in enumerate(blocks_of(page))),
    *(pytest.param(blocks_of(page), id=page.stem) for page in WRITTEN if page not in SINGLE and blocks_of(page)),
]


@pytest.mark.parametrize("blocks", EXAMPLES)
def test_the_documentations_python_runs_and_prints_what_stands_below_it(blocks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        capsys.readouterr()
        exec(compile(block.code, "example", "exec"), names)
        printed = capsys.readouterr().out
        if block.printed is not None:
            # Long lines are broken in the documentation, and "..." stands for the rest.
            wanted, got = " ".join(block.printed.split()), " ".join(printed.split())
            assert got == wanted or (wanted.endswith("...") and got.startswith(wanted[:-3])), printed


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_every_column_of_a_table_has_a_head(page):
    # Screen readers announce it with every cell.
    heads = re.findall(r"^(\|.*\|)\n\|[ |:-]+\|$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [head for head in heads if not all(cell.strip() for cell in head.strip("|").split("|"))] == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_a_splitter_to_copy_says_where_the_task_is(page):
    # Without routing, scikit-learn's tools hand a splitter the table alone.
    for copied in re.findall(r"cv=kinfolk\.\w+\([^)]*\)", page.read_text(encoding="utf-8")):
        assert "task_column=" in copied


def test_the_readme_names_the_two_commands_and_its_picture_is_there():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", readme)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).is_file()


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_links_within_the_documentation_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    made = {"pictures/index.rst"}
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists() or target in made, f"{page.name}: {target}"
    for listed in re.findall(r"```{toctree}(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        for entry in (line for line in listed.splitlines() if line and not line.startswith(":")):
            assert (page.parent / f"{entry}.md").exists() or f"{entry}.rst" in made, f"{page.name}: {entry}"


@pytest.mark.parametrize("name", sorted(set(kinfolk.plots.__all__)))
def test_every_picture_has_a_page_of_the_gallery_of_its_own_and_a_line_in_the_reference(name):
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "gallery").glob("plot_*.py")]
    drawn = [set(re.findall(r"plots\.(\w+)\(", page)) for page in pages]
    assert drawn.count({name}) == 1
    assert all(len(functions) == 1 for functions in drawn)
    assert f"   plots.{name}\n" in (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in kinfolk.__all__ if name != "UnseenWarning"])
def test_every_public_name_is_in_the_reference(name):
    assert f"   {name}\n" in (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
