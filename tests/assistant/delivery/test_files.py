"""Answers as files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kinfolk_assistant.delivery.deliverer import NotDelivered
from kinfolk_assistant.delivery.files import FileDeliverer, write_whole
from tests.assistant.delivery.calendars import outgoing


def test_an_answer_is_a_file_named_by_the_replys_number(tmp_path: Path) -> None:
    sent = outgoing()
    FileDeliverer(tmp_path / "new" / "folder").deliver(sent)
    [path] = (tmp_path / "new" / "folder").iterdir()
    assert path.name == "reply-7.ics"
    assert path.read_bytes().decode() == sent.text


def test_an_answer_delivered_twice_is_one_file(tmp_path: Path) -> None:
    for _ in range(2):
        FileDeliverer(tmp_path).deliver(outgoing())
    assert [path.name for path in tmp_path.iterdir()] == ["reply-7.ics"]
    assert FileDeliverer.certain


def test_a_write_that_fails_leaves_the_old_file_whole_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reply-7.ics"
    path.write_text("old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotDelivered, match=r"No space left on device\.$"):
        FileDeliverer(tmp_path).deliver(outgoing())
    assert [one.name for one in tmp_path.iterdir()] == ["reply-7.ics"]
    assert path.read_text() == "old"


def test_content_is_on_the_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (happened.append("fsync"), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda old, new: (happened.append("replace"), replace(old, new)))
    write_whole(tmp_path / "x", b"content")
    assert happened == ["fsync", "replace", "fsync"]
    assert (tmp_path / "x").read_bytes() == b"content"


def test_a_folder_that_cannot_be_made_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotDelivered, match=r"^The answer could not be written to .*\.$"):
        FileDeliverer(tmp_path / "file" / "folder").deliver(outgoing())
