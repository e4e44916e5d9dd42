"""Files that are replaced as a whole."""

from __future__ import annotations

import functools
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gscope.queries.run_folder import whole_file
from gscope.queries.run_folder.whole_file import exchange_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable

durably = functools.partial(replace_file, is_durable=True)
WAYS = [replace_file, durably, exchange_file]
QUICK = [replace_file, exchange_file]


@pytest.mark.parametrize("write", WAYS)
def test_a_file_is_created_and_replaced(tmp_path: Path, write: Callable[..., None]) -> None:
    path = tmp_path / "state.json"
    for text in ("long, and longer", "…"):
        write(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_keeps_the_file_that_it_has_opened(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    exchange_file(path, "first")
    with path.open() as reader:
        exchange_file(path, "second")
        exchange_file(path, "third")
        assert reader.read() == "first"
    assert path.read_text() == "third"


def test_names_are_exchanged_where_there_are_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename over a file makes ext4 write the new one first."""
    path, replaced = tmp_path / "state.json", []
    whole = Path.replace

    def noted(self: Path, target: Path) -> Path:
        replaced.append(target)
        return whole(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    for text in ("first", "second", "third"):
        exchange_file(path, text)
    assert replaced == [path]


def test_a_file_system_that_cannot_exchange_names_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_file, "_RENAME_EXCHANGE", 1 << 20)
    for text in ("first", "second"):
        exchange_file(tmp_path / "state.json", text)
        assert (tmp_path / "state.json").read_text() == text
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("write", QUICK)
def test_only_its_owner_can_write_it(tmp_path: Path, write: Callable[..., None]) -> None:
    before = os.umask(0)
    try:
        write(tmp_path / "state.json", "{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "state.json").stat().st_mode) == 0o644


@pytest.mark.parametrize("name", ["state.new", "state.json"])
@pytest.mark.parametrize("write", QUICK)
def test_a_link_in_its_way_is_not_followed(
    tmp_path: Path, write: Callable[..., None], name: str
) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    (tmp_path / name).symlink_to(other)
    write(tmp_path / "state.json", "{}")
    assert other.read_text() == "precious"
    assert (tmp_path / "state.json").read_text() == "{}"
    assert {each.name for each in tmp_path.iterdir()} == {"other", "state.json"}


@pytest.mark.parametrize("write", QUICK)
def test_what_was_there_stays_if_it_cannot_be_written(
    tmp_path: Path, write: Callable[..., None]
) -> None:
    path = tmp_path / "state.json"
    write(path, "old")
    (tmp_path / "state.new").mkdir()
    with pytest.raises(IsADirectoryError):
        write(path, "new")
    assert path.read_text() == "old"
