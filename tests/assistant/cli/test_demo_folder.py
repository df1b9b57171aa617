from __future__ import annotations

from kinfolk_assistant.delivery.configuration import read_configuration
from tests.assistant.cli.conftest import Demo


def test_the_settings_beside_the_demos_ledger_give_answers_a_way_out(demo: Demo) -> None:
    settings = demo.folder / "assistant.toml"
    assert f"serve --settings {settings}" in demo.said
    configuration = read_configuration(settings)
    assert configuration.warnings == ()
    assert configuration.folder == demo.folder / "answers"
    assert configuration.ledger == str(demo.folder / "ledger.db")
