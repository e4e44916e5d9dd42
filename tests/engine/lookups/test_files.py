"""Files of lookups that change, are half written, damaged or missing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from gscope.engine.lookups import files
from gscope.engine.lookups.files import LookupFile, read_lookup
from gscope.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.engine.lookups.table import LookupTable


def write(path: Path, text: str) -> None:
    """A file of its own, put in place as a whole."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)  # noqa: PTH105  # atomic on every system


def names(table: LookupTable | None) -> list[str] | None:
    return None if table is None else list(table.values.to_pylist())


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    write(path, "::1,a\n")
    file = LookupFile("networks", str(path))
    assert names(file.read()) == ["a"]
    assert file.read_change() is None
    write(path, "::1,b\n")
    assert names(file.read_change()) == ["b"]
    assert file.read_change() is None


def test_an_invalid_or_missing_file_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    write(path, "::1,a\n")
    file = LookupFile("networks", str(path))
    file.read()
    write(path, "::1,a\n::2\n")
    with pytest.raises(EngineError, match=r"n\.csv:2: expected network,name"):
        file.read_change()
    assert file.read_change() is None
    path.unlink()
    with pytest.raises(EngineError, match="no such file"):
        file.read_change()
    assert file.read_change() is None
    write(path, "::1,c\n")
    assert names(file.read_change()) == ["c"]


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    write(path, "::1,a\n")
    file = LookupFile("networks", str(path))
    file.read()
    write(path, "::1,half\n")
    whole = files.read_lookup

    def slow(name: str, where: str) -> LookupTable:
        table = whole(name, where)
        write(path, "::1,half\n::2,rest\n")
        return table

    with patch.object(files, "read_lookup", slow):
        assert file.read_change() is None
    assert names(file.read_change()) == ["half", "rest"]


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "services"
    path.write_bytes(b"ssh 22/tcp\n\xff\xfe 23/tcp\n")
    with pytest.raises(EngineError, match=r"services:2: the line is not UTF-8 text"):
        read_lookup("services", str(path))
    with pytest.raises(EngineError, match=r"cannot read services from .*: is a directory"):
        read_lookup("services", str(tmp_path))
