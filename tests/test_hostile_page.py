"""The page of hostile input is what happens: made from the tables that ``test_door`` tries, and compared with them.

``python -m tests.test_hostile_page`` writes it anew.
"""

from pathlib import Path

from tests.test_door import FAMILIES, FORMS, N_ROWS, TABLES, TRAINING, UNKNOWN_TASKS, outcome

PAGE = Path(__file__).parents[1] / "docs" / "hostile-input.md"
SHOWN = ("ClusteredNB", "LICAClassifier")
HEAD = """# Bad input, and what happens

Estimators, models that `kinfolk.load` gives and the command line take a table through the same door, and say the same
about it, in one sentence; the command line ends with status 2. The tables below are those that the tests try on every
estimator; the answers are those of `ClusteredNB`, fitted to a column `f` of words and a column `g` of numbers, and of
`LICAClassifier`, fitted to numbers alone, both with tasks in column `who`. This page is made by running them
(`python -m tests.test_hostile_page`).

"as before" means the very answers to the good table, "answered" an answer for every row: naive Bayes leaves missing and
unseen values out of the product, and a task never seen is answered as a new one, with a warning where most rows are of
such tasks.
"""
FILES = """
## Files

| file | what happens |
| --- | --- |
| CSV with lines too short, or columns without a name | read; a warning counts the short lines |
| CSV with lines too long, or not UTF-8; other tables that are damaged | refused in one sentence that names the file |
| two columns of one name | refused in one sentence that names the column |
| text in CSV that begins with = + - @ | written with an apostrophe in front, read without (`--no-escape`) |
| a model file that is damaged, made up, pickled, or a bomb | refused in one sentence; nothing in it is run |
| a checkpoint that was changed, or is another fit's | refused in one sentence that names it |
| a BIF file that is no BIF | refused in one sentence with the line |
| invitations of any kind | what cannot be read is put before the user; nothing is answered |

`make fuzz` hands readers made-up and changed files, by coverage where `atheris` installs. Anything but a sentence that
refuses a file is a finding, and so is a second of processor time or a gibibyte of memory; an input that ends the
process is kept, and the run goes on. An execution takes between 0.02 ms (BIF) and about 1 ms (iCalendar) of
the processor. Every reader has had more than a million:

| reader | executions | what was found |
| --- | --- | --- |
| `load` | 1,035,729 | nothing |
| BIF | 1,723,185 | nothing |
| iCalendar and mail | 1,064,126 | a line break in a recurrence rule ended the reading; its event is refused now |
| CSV | 1,024,122 | nothing |
| Parquet | 1,033,044 | 11 files that end the process, in polars (below); none in the last 702,044, with the check |
| sound | 1,018,853 | by reading the code: a rate that is a large prime took seconds and a gibibyte; it no longer does |

A negative number in a page header of a Parquet file makes polars 2.1 ask for as much memory as there is not, and abort,
which no Python code can catch. Every page header is therefore read before polars reads the file, which takes about a
hundredth of the time of counting it; a file with one that cannot be right is refused. This holds for paths and folders
that kinfolk opens, not for lazy frames and tables of other engines.
"""


def said(call, table, good):
    """What happens to a table, in words."""
    found = outcome(call, table)
    if isinstance(found, str):
        # A cell of a table, whatever the sentence holds.
        return found.replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
    if good is not None and found.shape == good.shape and (found == good).all():
        return "as before"
    return f"answered, {len(found)} rows" if len(found) != N_ROWS else "answered"


def page():
    """The page as it should be."""
    shown = {name: next(one for one in FAMILIES if one.name == name) for name in SHOWN}
    models = {name: family.fit() for name, family in shown.items()}
    good = {name: outcome(models[name].predict_proba, shown[name].table) for name in SHOWN}
    parts = [HEAD]
    for heading, tables in (("Rows to be answered", TABLES | UNKNOWN_TASKS), ("Other forms of a table", FORMS)):
        parts.append(
            f"\n## {heading}\n\n| table | {' | '.join(f'`{name}`' for name in SHOWN)} |\n| --- | --- | --- |\n"
        )
        for kind, (hostile, _) in tables.items():
            cells = [said(models[name].predict_proba, hostile(shown[name].table), good[name]) for name in SHOWN]
            parts.append(f"| {kind} | {' | '.join(cells)} |\n")
    parts.append(
        f"\n## Rows to learn from\n\n| table | {' | '.join(f'`{name}`' for name in SHOWN)} |\n| --- | --- | --- |\n"
    )
    for kind, (hostile, _) in TRAINING.items():
        cells = []
        for family in shown.values():
            table = hostile(family.table)
            cells.append(said(lambda table, own=family: own.fit(table, own.y[: len(table)]), table, None))
        parts.append(f"| {kind} | {' | '.join(cells)} |\n")
    return "".join([*parts, FILES])


def test_the_page_says_what_happens():
    assert PAGE.read_text("utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
