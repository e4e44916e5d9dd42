"""Where a user's cache is: it must work for users without a home, and belong to that user alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gscope.queries.user_cache import cache_folder, unusable_cache

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files; the user database knows no home."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)

    def unknown() -> Path:
        message = "Could not determine home directory."
        raise RuntimeError(message)

    monkeypatch.setattr("tempfile.gettempdir", lambda: str(folder))
    monkeypatch.setattr("pathlib.Path.home", unknown)
    return folder / f"gscope-{os.geteuid()}" / "cache"


def test_it_is_where_the_environment_says(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path / "x"), "HOME": str(tmp_path / "h")}
    assert cache_folder(environ) == tmp_path / "x" / "gscope"
    assert cache_folder({"HOME": str(tmp_path / "h")}) == tmp_path / "h" / ".cache" / "gscope"
    assert cache_folder({**environ, "XDG_CACHE_HOME": "relative"}) == (
        tmp_path / "h" / ".cache" / "gscope"
    )


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"HOME": ""},
        {"HOME": "relative"},
        {"HOME": "/proc/nothing"},
        {"XDG_CACHE_HOME": "/dev/null"},
    ],
)
def test_without_a_usable_home_it_is_among_temporary_files(
    environ: dict[str, str], temporary: Path
) -> None:
    assert cache_folder(environ) == temporary
    assert temporary.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_is_passed_over(tmp_path: Path, temporary: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert cache_folder({"XDG_CACHE_HOME": str(shared)}) == temporary


def test_without_any_place_there_is_none(temporary: Path) -> None:
    temporary.parent.mkdir()
    temporary.parent.chmod(0o777)
    assert cache_folder({}) is None


def test_an_unusable_cache_is_reported_once_with_the_reason_and_the_remedy(temporary: Path) -> None:
    environ = {"XDG_CACHE_HOME": "/dev/null"}
    said = unusable_cache(environ)
    assert said is not None
    assert said.startswith("compiled kernels cannot be kept in /dev/null/gscope: not a directory;")
    assert f"{temporary} replaces it" in said
    assert "Set XDG_CACHE_HOME to a folder that only you can write to" in said
    assert unusable_cache(environ) is None
    other = unusable_cache({"XDG_CACHE_HOME": "/dev/zero"})
    assert other is not None
    assert "/dev/zero/gscope" in other


def test_a_cache_that_can_be_used_is_not_reported(tmp_path: Path, temporary: Path) -> None:
    assert unusable_cache({"XDG_CACHE_HOME": str(tmp_path / "x")}) is None
    assert unusable_cache({}) is None
    assert not (temporary / "reported").exists()


def test_a_user_without_any_cache_is_told_at_each_start(temporary: Path) -> None:
    temporary.parent.mkdir()
    temporary.parent.chmod(0o777)
    for _ in range(2):
        said = unusable_cache({"XDG_CACHE_HOME": "/dev/null"})
        assert said is not None
        assert "each start compiles them again" in said
