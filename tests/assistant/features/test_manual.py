from pathlib import Path

from kinfolk_assistant.features.manual import page
from kinfolk_assistant.features.rules import ALL_FEATURES

PAGE = Path(__file__).parents[3] / "docs" / "assistant-features.md"


def test_the_page_in_the_documentation_is_the_one_made_from_the_rules():
    """If not: python -m kinfolk_assistant.features.manual > docs/assistant-features.md."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_page_has_a_row_for_every_value_of_every_feature():
    sections = page().split("\n### ")[1:]
    assert [section.split("`")[1] for section in sections] == list(ALL_FEATURES)
    for section, values in zip(sections, ALL_FEATURES.values(), strict=True):
        rows = [line.split("|")[1].strip(" `") for line in section.splitlines() if line.startswith("| `")]
        assert rows == list(values)
