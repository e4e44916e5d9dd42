"""Files that are replaced as a whole."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from gscope.queries.run_folder.whole_file import replace_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_file_is_created_and_replaced(tmp_path: Path, is_durable: bool) -> None:
    path = tmp_path / "state.json"
    for text in ("long, and longer", "…"):
        replace_file(path, text, is_durable=is_durable)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_only_its_owner_can_write_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        replace_file(tmp_path / "state.json", "{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "state.json").stat().st_mode) == 0o644


def test_a_link_in_its_way_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    (tmp_path / "state.new").symlink_to(other)
    replace_file(tmp_path / "state.json", "{}")
    assert other.read_text() == "precious"


def test_what_was_there_stays_if_it_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    replace_file(path, "old")
    (tmp_path / "state.new").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(path, "new")
    assert path.read_text() == "old"
