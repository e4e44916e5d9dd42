"""What a kernel's place in the cache depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba

from gscope.capture import jit

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def folder_of(source: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> str:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(root))
    scope: dict[str, object] = {}
    exec(compile("def f(a):\n    return a + 1\n", str(source), "exec"), scope)
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    try:
        function = jit.kernel(scope["f"])  # type: ignore[type-var]
        folder = str(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
        assert function(1) == 2  # type: ignore[operator]
        return folder
    finally:
        monkeypatch.setattr(numba.config, "CACHE_DIR", before)


def test_a_kernel_moves_when_its_imports_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    monkeypatch.setattr(jit, "_HERE", package)
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
