"""What compiled kernels take on the disk is bounded.

Only files of our making go, the ones used longest ago first.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from gscope.capture.kernels.disk_cache import IN_USE_NS, mark_used, prune

if TYPE_CHECKING:
    from pathlib import Path

NOW_NS = 10_000 * 1_000_000_000
FILE_BYTES = 4096
PLACE = f"lfta_{'a' * 40}"


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    folder.mkdir()
    return folder


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "lfta"
    (folder / "__pycache__").mkdir(parents=True)
    return folder


def add_kernel(kernels: Path, number: int, *, used_s: int) -> Path:
    """A folder as numba fills it: two files of a block each."""
    folder = kernels / f"{number:016x}"
    place = folder / PLACE
    place.mkdir(parents=True)
    for name in ("m.run-9.py311.nbi", "m.run-9.py311.1.nbc"):
        (place / name).write_bytes(b"x" * FILE_BYTES)
    os.utime(folder, ns=(used_s * 1_000_000_000,) * 2)
    return folder


def add_source(sources: Path, number: int, *, used_s: int) -> Path:
    path = sources / f"lfta_{number:024x}.py"
    path.write_bytes(b"#" * FILE_BYTES)
    (sources / "__pycache__" / f"{path.stem}.cpython-311.pyc").write_bytes(b"x" * FILE_BYTES)
    os.utime(path, ns=(used_s * 1_000_000_000, 1_000_000_000))
    return path


def add_machine_code(sources: Path, number: int, *, used_s: int) -> list[Path]:
    """Files for two kinds of processors, of a block each."""
    stem = f"lfta_{number:024x}"
    files = [sources / f"{stem}.{processor:016x}.o" for processor in (1, 2)]
    for file in files:
        file.write_bytes(b"x" * FILE_BYTES)
        os.utime(file, ns=(used_s * 1_000_000_000,) * 2)
    return files


def test_what_was_used_longest_ago_goes_until_the_rest_fits(kernels: Path, sources: Path) -> None:
    folders = [add_kernel(kernels, number, used_s=used) for number, used in enumerate((30, 10, 20))]
    path = add_source(sources, 1, used_s=15)
    freed = prune(kernels, sources, NOW_NS, max_bytes=4 * FILE_BYTES)
    assert freed == 4 * FILE_BYTES
    assert [folder.exists() for folder in folders] == [True, False, True]
    assert not path.exists()
    assert list((sources / "__pycache__").iterdir()) == []


def test_within_the_bound_nothing_goes(kernels: Path, sources: Path) -> None:
    add_kernel(kernels, 1, used_s=1)
    add_source(sources, 1, used_s=1)
    assert prune(kernels, sources, NOW_NS, max_bytes=4 * FILE_BYTES) == 0


def test_what_is_in_use_stays_whatever_it_takes(kernels: Path, sources: Path) -> None:
    before = (NOW_NS - IN_USE_NS) // 1_000_000_000
    folder = add_kernel(kernels, 1, used_s=before + 1)
    path = add_source(sources, 1, used_s=before + 1)
    assert prune(kernels, sources, NOW_NS, max_bytes=0) == 0
    assert folder.exists()
    assert path.exists()


def test_use_is_noted_and_a_source_keeps_the_time_of_its_change(
    kernels: Path, sources: Path
) -> None:
    folder = add_kernel(kernels, 1, used_s=1)
    path = add_source(sources, 1, used_s=1)
    for each in (folder, path):
        mark_used(each)
    assert path.stat().st_mtime_ns == 1_000_000_000
    assert prune(kernels, sources, NOW_NS, max_bytes=0) == 0
    with pytest.raises(FileNotFoundError):
        mark_used(sources / "gone")


def test_files_of_others_stay_and_links_are_not_followed(
    tmp_path: Path, kernels: Path, sources: Path
) -> None:
    elsewhere = add_kernel(tmp_path / "elsewhere", 7, used_s=1)
    folder = add_kernel(kernels, 1, used_s=1)
    foreign = [
        kernels / "notes.txt",
        kernels / "0123" / PLACE / "m.nbi",
        folder / "keep.nbi",
        folder / PLACE / "keep.txt",
        sources / "mine.py",
        sources / "__pycache__" / "mine.cpython-311.pyc",
    ]
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    links = [
        kernels / f"{2:016x}",
        folder / f"other_{'b' * 40}",
        folder / PLACE / "linked.nbi",
        sources / f"lfta_{9:024x}.py",
    ]
    for link, target in zip(
        links, (elsewhere, elsewhere / PLACE, foreign[0], foreign[0]), strict=True
    ):
        link.symlink_to(target)
    os.utime(folder, ns=(1, 1))
    prune(kernels, sources, NOW_NS, max_bytes=0)
    assert all(path.read_text() == "mine" for path in foreign)
    assert all(link.is_symlink() for link in links)
    assert len(list((elsewhere / PLACE).iterdir())) == 2
    assert not (folder / PLACE / "m.run-9.py311.nbi").exists()


def test_a_folder_that_is_a_link_itself_is_looked_after(
    tmp_path: Path, kernels: Path, sources: Path
) -> None:
    folder = add_kernel(kernels, 1, used_s=1)
    linked = tmp_path / "linked"
    linked.symlink_to(kernels)
    assert prune(linked, sources, NOW_NS, max_bytes=0) == 2 * FILE_BYTES
    assert not folder.exists()


def test_machine_code_of_native_kernels_goes_with_its_folder(kernels: Path, sources: Path) -> None:
    folder = kernels / f"{5:016x}"
    folder.mkdir()
    names = [f"gscope.capture.m.run.{'a' * 16}.o", "gscope.capture.m.run.ab12_x9z.tmp"]
    for name in names:
        (folder / name).write_bytes(b"x" * FILE_BYTES)
    os.utime(folder, ns=(1, 1))
    assert prune(kernels, sources, NOW_NS, max_bytes=3 * FILE_BYTES) == 0
    assert prune(kernels, sources, NOW_NS, max_bytes=FILE_BYTES) == 2 * FILE_BYTES
    assert not folder.exists()


def test_what_a_killed_process_left_unfinished_goes(kernels: Path, sources: Path) -> None:
    folder = add_kernel(kernels, 1, used_s=1)
    (folder / PLACE / f"m.run-9.py311.1.nbc.tmp.{'c' * 16}").write_text("half")
    os.utime(folder, ns=(1, 1))
    leftovers = [sources / "tmpab12_x9z.tmp", sources / f"lfta_{3:024x}.ab12_x9z.tmp"]
    for path in leftovers:
        path.write_text("half")
        os.utime(path, ns=(1, 1))
    prune(kernels, sources, NOW_NS)
    assert not any(path.exists() for path in leftovers)
    prune(kernels, sources, NOW_NS, max_bytes=0)
    assert not folder.exists()


def test_machine_code_goes_with_its_source(kernels: Path, sources: Path) -> None:
    older, newer = (add_source(sources, number, used_s=number) for number in (1, 2))
    gone = add_machine_code(sources, 1, used_s=30)
    kept = add_machine_code(sources, 2, used_s=1)
    freed = prune(kernels, sources, NOW_NS, max_bytes=4 * FILE_BYTES)
    assert freed == 4 * FILE_BYTES
    assert not any(path.exists() for path in (older, *gone))
    assert all(path.exists() for path in (newer, *kept))


def test_what_was_compiled_of_a_source_that_is_gone_goes(kernels: Path, sources: Path) -> None:
    path = add_source(sources, 1, used_s=1)
    files = add_machine_code(sources, 1, used_s=1)
    byte_code = sources / "__pycache__" / f"{path.stem}.cpython-311.pyc"
    os.utime(byte_code, ns=(1, 1))
    path.unlink()
    foreign = [sources / "lfta_1.o", sources / f"{path.stem}.o", sources / "notes.o"]
    for each in foreign:
        each.write_text("mine")
        os.utime(each, ns=(1, 1))
    recent = add_machine_code(sources, 2, used_s=(NOW_NS - IN_USE_NS) // 1_000_000_000 + 1)
    of_link = add_machine_code(sources, 3, used_s=1)
    link = sources / f"lfta_{3:024x}.py"
    link.symlink_to(foreign[0])
    assert prune(kernels, sources, NOW_NS) == 3 * FILE_BYTES
    assert not any(each.exists() for each in (*files, byte_code))
    assert all(each.exists() for each in (*foreign, *recent, *of_link, link))


def test_folders_that_are_not_there_hold_nothing(tmp_path: Path) -> None:
    assert prune(tmp_path / "a", tmp_path / "b", NOW_NS, max_bytes=0) == 0


def test_several_may_prune_at_once(kernels: Path, sources: Path) -> None:
    for number in range(50):
        add_kernel(kernels, number, used_s=number)
    together = threading.Barrier(4)

    def one() -> None:
        together.wait()
        prune(kernels, sources, NOW_NS, max_bytes=0)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(kernels.iterdir()) == []
