"""Compiled kernels on disk.

Shared by processes, compiled again if damaged, not needed to answer.
"""

from __future__ import annotations

import multiprocessing
import os
from typing import TYPE_CHECKING, Any
from unittest import mock

import numba
import numpy as np
import pytest

from gscope.engine.sampling import kernel_files
from gscope.engine.sampling.jit import compiled
from gscope.engine.sampling.kernel_files import kernel_module
from gscope.engine.sampling.kernels import _compiled

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

TEXT = """
def doubled(x):
    return 2 * x


def fold(values):
    total = 0
    for i in range(len(values)):
        total += doubled(values[i])
    return total
"""
VALUES = np.arange(5)


@pytest.fixture(autouse=True)
def sampling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kernels, which is not there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _compiled.cache_clear()
    return tmp_path / "gscope" / "sampling"


def load(text: str = TEXT) -> Any:
    """The dispatcher of a kernel."""
    found = kernel_module(text)
    assert found is not None
    module, folder = found
    dispatcher = compiled(module.fold, (VALUES,), folder)
    assert dispatcher is not None
    assert dispatcher(VALUES) == 20
    return dispatcher


def is_loaded(dispatcher: Any) -> bool:
    """Whether it was loaded, not compiled."""
    hits: int = sum(dispatcher.stats.cache_hits.values())
    return hits == 1


def run_at_once(barrier: Barrier, folder: str) -> int:
    """Compile a kernel while others do; the answer."""
    os.environ["XDG_CACHE_HOME"] = folder
    barrier.wait(100)
    return _compiled(TEXT)(VALUES)


def in_process(barrier: Barrier, folder: str, answers: Any) -> None:
    answers.put(run_at_once(barrier, folder))


@pytest.mark.slow
def test_processes_that_compile_at_once_answer_and_leave_one_kernel(
    tmp_path: Path, sampling: Path
) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(3), context.SimpleQueue()
    processes = [
        context.Process(target=in_process, args=(barrier, str(tmp_path), answers), daemon=True)
        for _ in range(3)
    ]
    for each in processes:
        each.start()
    for each in processes:
        each.join(200)
        assert each.exitcode == 0
    assert [answers.get() for _ in processes] == [20] * 3
    (folder,) = sampling.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["kernel.py", "machine_code"]
    assert (folder / "kernel.py").read_text() == TEXT
    assert is_loaded(load())


def test_a_kernel_is_compiled_once(sampling: Path) -> None:
    assert not is_loaded(load())
    (path,) = sampling.glob("*/kernel.py")
    before = path.stat()
    assert is_loaded(load())
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    for folder in (path.parent, path.parent / "machine_code"):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_machine_code_is_compiled_again(sampling: Path, suffix: str) -> None:
    load()
    (path,) = sampling.rglob(f"*.{suffix}")
    path.write_bytes(path.read_bytes()[:100])
    assert not is_loaded(load())
    assert is_loaded(load())


def test_a_damaged_text_is_written_again(sampling: Path) -> None:
    load()
    (path,) = sampling.glob("*/kernel.py")
    path.write_text(TEXT[:40])
    load()
    assert path.read_text() == TEXT


def test_kernels_that_cannot_be_kept_are_compiled(sampling: Path) -> None:
    load()
    (path,) = sampling.rglob("machine_code")
    moved = path.rename(path.with_name("other"))
    path.write_text("not a folder")
    assert not is_loaded(load())
    path.unlink()
    moved.rename(path)
    assert is_loaded(load())


def test_without_a_folder_kernels_are_compiled_for_the_process(sampling: Path) -> None:
    sampling.parent.mkdir(mode=0o700)
    sampling.write_text("not a folder")
    assert kernel_module(TEXT) is None
    assert _compiled(TEXT)(VALUES) == 20
    with mock.patch.object(kernel_files, "cache_folder", return_value=None):
        assert kernel_module(TEXT) is None


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, sampling: Path) -> None:
    load()
    (folder,) = sampling.iterdir()
    folder.chmod(0o777)
    assert kernel_module(TEXT) is None


def test_machine_code_is_never_loaded_from_the_folder_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(shared))  # NUMBA_CACHE_DIR
    load()
    assert list(shared.iterdir()) == []
    assert getattr(numba.config, "CACHE_DIR") == str(shared)  # noqa: B009


def test_a_text_that_numba_cannot_compile_is_run_by_python(sampling: Path) -> None:
    text = TEXT.replace("total = 0", "total = eval('0')")
    assert _compiled(text)(VALUES) == 20
    assert _compiled(text)(VALUES) == 20
    assert list(sampling.rglob("*.nbc")) == []


def test_the_kernels_used_last_are_kept(sampling: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_files, "MAX_KEPT", 3)
    for number in range(5):
        found = kernel_module(f"{TEXT}# {number}")
        assert found is not None
        os.utime(found[1].parent, (number, number))
    assert {path.read_text()[-1] for path in sampling.glob("*/kernel.py")} == {"2", "3", "4"}
