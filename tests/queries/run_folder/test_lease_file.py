"""Claims are left for a daemon that takes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.queries.run_folder.lease_file import read_leases, write_leases

if TYPE_CHECKING:
    from pathlib import Path


def test_the_latest_lease_of_each_reader_is_there(tmp_path: Path) -> None:
    write_leases(tmp_path, "hfta", {"a": [1, 2]})
    write_leases(tmp_path, "hfta", {"a": [3], "b": []})
    write_leases(tmp_path, "cli", {"c": [4]})
    assert read_leases(tmp_path, "hfta") == {"a": (3,), "b": ()}
    assert read_leases(tmp_path, "cli") == {"c": (4,)}


def test_a_reader_without_leases_has_none(tmp_path: Path) -> None:
    assert read_leases(tmp_path, "hfta") == {}


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 1}', '{"a": ["x"]}', '{"a": null}', "\0"])
def test_what_makes_no_sense_is_no_lease(tmp_path: Path, text: str) -> None:
    (tmp_path / "leases-hfta.json").write_text(text)
    assert read_leases(tmp_path, "hfta") == {}


def test_a_lease_that_cannot_be_left_is_no_error(tmp_path: Path) -> None:
    write_leases(tmp_path / "gone", "hfta", {"a": [1]})
