"""The tables of the page of hostile input are what happens: made from those that ``test_door`` tries, and compared.

``python -m tests.test_hostile_page`` writes them anew, and leaves the text around them as it is.
"""

from pathlib import Path

from tests.test_door import (
    BESIDE,
    FAMILIES,
    FORMS,
    N_ROWS,
    TABLES,
    TRAINING,
    UNKNOWN_TASKS,
    beside,
    fitted,
    outcome,
    untold,
)

PAGE = Path(__file__).parents[1] / "docs" / "hostile-input.md"
SHOWN = ("ClusteredNB", "LICAClassifier")
BEGIN, END = "<!-- Made by python -m tests.test_hostile_page. -->\n", "<!-- The end of what is made. -->\n"


def cell(sentence):
    """A cell of a table, whatever the sentence holds."""
    return sentence.replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def said(call, table, good):
    """What happens to a table, in words."""
    found = outcome(call, table)
    if isinstance(found, str):
        return cell(found)
    if good is not None and found.shape == good.shape and (found == good).all():
        return "as before"
    return f"answered, {len(found)} rows" if len(found) != N_ROWS else "answered"


def made():
    """The tables as they should be."""
    shown = {name: next(one for one in FAMILIES if one.name == name) for name in SHOWN}
    models = {name: family.fit() for name, family in shown.items()}
    good = {name: outcome(models[name].predict_proba, shown[name].table) for name in SHOWN}
    head = f"| table | {' | '.join(f'`{name}`' for name in SHOWN)} |\n| --- | --- | --- |\n"
    parts = []
    for heading, tables in (("Rows to be answered", TABLES | UNKNOWN_TASKS), ("Other forms of a table", FORMS)):
        parts.append(f"\n## {heading}\n\n{head}")
        for kind, (hostile, _) in tables.items():
            cells = [said(models[name].predict_proba, hostile(shown[name].table), good[name]) for name in SHOWN]
            parts.append(f"| {kind} | {' | '.join(cells)} |\n")
    parts.append(f"\n## Rows to learn from\n\n{head}")
    for kind, hostile in TRAINING.items():
        cells = [learnt(family, {"X": hostile(family.table), "y": family.y}) for family in shown.values()]
        parts.append(f"| {kind} | {' | '.join(cells)} |\n")
    parts.append(f"\n## Labels, weights and tasks beside a table\n\n{head}")
    for kind, change in BESIDE.items():
        cells = [learnt(untold(family), beside(family) | change(family.y)) for family in shown.values()]
        parts.append(f"| {kind} | {' | '.join(cells)} |\n")
    return "".join([*parts, "\n"])


def learnt(family, given):
    """What happens to rows to learn from, in words."""
    found = fitted(family, given)
    return said(lambda _: found if not isinstance(found, str) else refuse(found), None, None).replace(
        "answered", "learnt"
    )


def refuse(sentence):
    raise ValueError(sentence)


def page():
    """The page as it should be."""
    head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{head}{BEGIN}{made()}{END}{rest.partition(END)[2]}"


def test_the_page_says_what_happens():
    assert PAGE.read_text("utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
