"""Folders that other users can change are found, however they can change them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.support.requirements import needs_root

from gscope.queries.ownership import ensure_private_folder, fault_of_folder, is_trusted_file

if TYPE_CHECKING:
    from pathlib import Path

OTHER = 54321


def test_a_folder_of_ours_below_a_sticky_one_is_trusted(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    made = ensure_private_folder(shared / "a" / "b")
    assert made.stat().st_mode & 0o777 == 0o700
    assert fault_of_folder(made) is None


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777, 0o702])
def test_a_folder_that_others_can_write_is_not(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    assert f"other users can write to {folder}" in str(fault_of_folder(folder))
    with pytest.raises(PermissionError, match="other users can write"):
        ensure_private_folder(folder)


def test_a_folder_that_others_can_replace_is_not(tmp_path: Path) -> None:
    parent = tmp_path / "home"
    folder = parent / ".cache" / "gscope"
    folder.mkdir(parents=True)
    parent.chmod(0o777)
    assert f"other users can write to {parent}" in str(fault_of_folder(folder))


def test_our_own_links_are_followed_to_where_they_end(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    assert fault_of_folder(tmp_path / "link") is None
    assert ensure_private_folder(tmp_path / "link" / "x") == (tmp_path / "disk" / "x").resolve()
    (tmp_path / "disk").chmod(0o777)
    assert "other users can write" in str(fault_of_folder(tmp_path / "link" / "x"))


def test_links_in_a_circle_and_what_is_missing_or_no_folder_are_faults(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "file").touch()
    assert "links" in str(fault_of_folder(tmp_path / "a"))
    assert "no such file" in str(fault_of_folder(tmp_path / "nothing"))
    assert "not a folder" in str(fault_of_folder(tmp_path / "file"))


@needs_root
def test_what_belongs_to_another_user_is_not_trusted(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    ours = theirs / "ours"
    ours.mkdir(parents=True)
    os.chown(theirs, OTHER, OTHER)
    assert f"the folder {theirs} belongs to another user (uid {OTHER})" in str(
        fault_of_folder(ours)
    )
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    os.lchown(link, OTHER, OTHER)
    assert f"the link {link} belongs to another user" in str(fault_of_folder(link))


def test_a_file_is_trusted_if_only_we_can_have_written_it(tmp_path: Path) -> None:
    file = tmp_path / "kernel"
    assert not is_trusted_file(file)
    file.touch(mode=0o600)
    assert is_trusted_file(file)
    file.chmod(0o660)
    assert not is_trusted_file(file)
    file.chmod(0o600)
    (tmp_path / "link").symlink_to(file)
    assert not is_trusted_file(tmp_path / "link")


@needs_root
def test_a_file_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    file = tmp_path / "kernel"
    file.touch(mode=0o644)
    os.chown(file, OTHER, OTHER)
    assert not is_trusted_file(file)
