"""What a kernel's place in the cache depends on."""

from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING, Any

import numba
import pytest

from gscope.capture.kernels import jit, kept
from gscope.capture.kernels.compiling import compiling_reported

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def read_sources_again() -> None:
    """Let a file that has changed be seen, as a new process sees it."""
    for cached in (kept._folder_of, kept.digest_with_imports, kept._imports, kept._content):
        cached.cache_clear()


def folder_of(source: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> str:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(root))
    read_sources_again()
    scope: dict[str, object] = {}
    exec(compile("def f(a):\n    return a + 1\n", str(source), "exec"), scope)
    function: Any = jit.kernel(scope["f"])  # type: ignore[type-var]
    assert function(1) == 2
    return str(function.dispatcher._cache.cache_path)


def test_a_kernel_moves_when_its_imports_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    monkeypatch.setattr(kept, "_HERE", package)
    source, helper = tmp_path / "generated.py", package / "helper.py"
    source.write_text("from gscope.capture.helper import word\n")
    helper.write_text("one\n")
    first = folder_of(source, monkeypatch, tmp_path / "cache")
    assert folder_of(source, monkeypatch, tmp_path / "cache") == first
    helper.write_text("two\n")
    assert folder_of(source, monkeypatch, tmp_path / "cache") != first


def test_a_function_without_a_file_is_compiled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of(tmp_path / "nowhere.py", monkeypatch, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


class Made:
    """A file with two functions, and its cache."""

    TEXT = (
        "def inner(a, b):\n    return a + b\ndef outer(a):\n    return inner(a, 1) + inner(a, 2)\n"
    )

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source = folder / "made.py"
        self.source.write_text(self.TEXT)
        self.cache = folder / "cache"
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(self.cache))
        monkeypatch.setattr(numba.config, "CACHE_DIR", "")

    def load(self, make_inner: Callable[[Any], Any] = jit.kernel) -> tuple[Any, Any]:
        """The two as new kernels, neither compiled nor loaded."""
        scope: dict[str, Any] = {}
        exec(compile(self.TEXT, str(self.source), "exec"), scope)
        scope["inner"] = make_inner(scope["inner"])
        return scope["inner"], jit.kernel(scope["outer"])

    @property
    def files(self) -> list[Path]:
        """Numba's files."""
        return sorted(self.cache.rglob("*.nb*"))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(tmp_path, monkeypatch)


def test_constants_make_no_copies_but_where_loops_are_to_be_unrolled(made: Made) -> None:
    inner, outer = made.load()
    assert outer(10) == 23
    assert len(inner.dispatcher.overloads) == 1
    made.source.write_text(f"{made.TEXT}# another file to numba\n")
    read_sources_again()
    inner, outer = made.load(jit.unrolled_kernel)
    assert outer(10) == 23
    assert len(inner.dispatcher.overloads) == 2


def test_parts_are_kept_with_the_kernel_that_calls_them(made: Made) -> None:
    _, outer = made.load(jit.kernel_part)
    assert outer(10) == 23
    assert {path.name.split("-")[0] for path in made.files} == {"made.outer"}
    inner, outer = made.load(jit.kernel_part)
    assert outer(10) == 23
    assert not inner.dispatcher.overloads
    assert sum(outer.dispatcher.stats.cache_hits.values()) == 1


def test_compiling_is_reported_and_loading_is_not(made: Made) -> None:
    for expected in ([made.source], []):
        compiled: list[Path] = []
        with compiling_reported(compiled.append):
            assert made.load(jit.kernel_part)[1](10) == 23
        assert compiled == expected


@pytest.mark.parametrize("damage", [b"", b"\x80\x04half"])
def test_files_that_a_crash_cut_short_are_compiled_again(made: Made, damage: bytes) -> None:
    assert made.load()[1](10) == 23
    for path in made.files:
        path.write_bytes(damage)
    assert made.load()[1](10) == 23
    _, outer = made.load()
    assert outer(10) == 23
    assert sum(outer.dispatcher.stats.cache_hits.values()) == 1


def test_code_that_two_processes_kept_under_one_name_is_not_called(made: Made) -> None:
    """numba numbers files by an index that another process may be changing."""
    inner, _ = made.load()
    assert (inner(1, 2), inner(1.5, 2.5)) == (3, 4.0)
    whole, fractions = (path for path in made.files if path.suffix == ".nbc")
    kept = whole.read_bytes()
    whole.write_bytes(fractions.read_bytes())
    for hits in (0, 1):  # the second call finds what the first has kept
        inner, _ = made.load()
        assert inner(1, 2) == 3
        assert sum(inner.dispatcher.stats.cache_hits.values()) == hits
    assert len(whole.read_bytes()) == len(kept)


def test_a_kernel_that_is_pruned_after_it_was_looked_up_is_compiled(made: Made) -> None:
    assert made.load()[1](10) == 23
    _, outer = made.load()
    shutil.rmtree(made.cache)
    assert outer(10) == 23
    assert sum(outer.dispatcher.stats.cache_hits.values()) == 0


def test_a_kernel_runs_where_the_disk_takes_nothing(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._save_index", full)
    assert made.load()[1](10) == 23
    assert made.files == []
