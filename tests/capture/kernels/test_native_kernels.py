"""Native kernels: called from Python without numba, kept as machine code, made again if damaged."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.requirements import ROOT

from gscope.capture.kernels import kept_module
from gscope.capture.kernels.compiling import compiling_reported
from gscope.capture.kernels.jit import kernel_part, native_kernel
from gscope.capture.kernels.language.intrinsics import External, call_at, ld64, st64
from gscope.capture.kernels.language.kinds import Kind, RecordKind, record_of_ints
from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

INT = Kind.INT
INT64 = st.integers(-(2**63), 2**63 - 1)


class Extent(NamedTuple):
    least: int
    greatest: int


class Found(NamedTuple):
    extent: Extent
    is_wide: int
    sum: int


_abs = External("abs", 32, 32)
_labs = External("labs", 64, 64)
_no_action = External("close", 32, 32)


@kernel_part
def extent_of(a: int, b: int) -> Extent:
    return Extent(least=min(a, b), greatest=max(a, b))


def found(pair: Extent, third: int) -> Found:
    both = extent_of(pair.least, pair.greatest)
    whole = extent_of(both.least, third)
    last = Extent(least=whole.least, greatest=max(both.greatest, third))
    return Found(last, last.greatest > 100, (pair.least & 255) + (third & 255))


FOUND = RecordKind(Found, (record_of_ints(Extent), Kind.BOOL, INT))


def native(function: Callable[..., Any], *kinds: Any, result: Any) -> Any:
    return native_kernel(*kinds, result=result)(function)


find = native(found, record_of_ints(Extent), INT, result=FOUND)


@settings(deadline=None)
@given(INT64, INT64, INT64)
def test_fields_go_in_and_come_back_one_by_one(a: int, b: int, third: int) -> None:
    three = (a, b, third)
    expected = min(three), max(three), int(max(three) > 100), (a & 255) + (third & 255)
    assert find(a, b, third) == expected


def of_c(a: int) -> tuple[int, int, int]:
    return _abs(a), _labs(a), _no_action(-1)


call_c = native(of_c, INT, result=RecordKind(None, (INT, INT, INT)))


def test_functions_of_c_take_and_return_numbers_of_their_width() -> None:
    assert call_c(-5) == (5, 5, -1)
    assert call_c(-(2**40) - 7) == (7, 2**40 + 7, -1)


def twice(a: int) -> int:
    return a * 2


def through(address: int, a: int) -> int:
    return call_at(address, (a,)) + call_at(address, (a + 1,))


def test_a_kernel_calls_another_by_its_address() -> None:
    double = native(twice, INT, result=INT)
    assert double(21) == 42
    address = double._called.loaded.address("gscope_twice")
    assert native(through, INT, INT, result=INT)(address, 10) == 20 + 22


def is_odd(a: int) -> bool:
    return a & 1 == 1


def stores(address: int, value: int) -> None:
    st64(address, ld64(address) + value)


def test_results_are_numbers_truths_or_nothing() -> None:
    assert [native(is_odd, INT, result=Kind.BOOL)(each) for each in (-1, 0, 7)] == [1, 0, 1]
    room = ctypes.c_int64(40)
    assert native(stores, INT, INT, result=Kind.NOTHING)(ctypes.addressof(room), 2) is None
    assert room.value == 42


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


def misses(function: Callable[..., Any]) -> int:
    """Load a new kernel of ``function`` and call it; return how many kernels were missing."""
    missed: list[Path] = []
    with compiling_reported(missed.append):
        assert native(function, INT, result=INT)(4) == 8
    return len(missed)


def test_machine_code_is_kept_for_other_processes(folder: Path) -> None:
    assert [misses(twice), misses(twice)] == [1, 0]
    (file,) = folder.rglob("*.o")
    assert file.name.startswith(f"{__name__}.twice.")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", [b"", b"half", b"\x7fELF" + b"\0" * 400])
def test_damaged_machine_code_is_made_again(folder: Path, damage: bytes) -> None:
    assert misses(twice) == 1
    (file,) = folder.rglob("*.o")
    file.write_bytes(damage)
    assert [misses(twice), misses(twice)] == [1, 0]


def test_code_that_others_can_write_is_not_loaded(folder: Path) -> None:
    assert misses(twice) == 1
    (file,) = folder.rglob("*.o")
    file.chmod(0o666)
    assert misses(twice) == 1


def test_a_kernel_runs_where_the_disk_takes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(kept_module, "_keep", full)
    assert misses(twice) == 1
    assert list(folder.rglob("*.o")) == []


def test_a_kernel_runs_without_a_folder(folder: Path) -> None:
    folder.chmod(0o777)  # others could replace what is in it
    assert [misses(twice), misses(twice)] == [1, 1]
    assert list(folder.rglob("*.o")) == []


def test_native_kernels_are_called_by_others_as_they_are_written() -> None:
    """A part that is a native kernel itself is compiled into the kernel that calls it."""
    inner = native(twice, INT, result=INT)

    def outer(a: int) -> int:
        return int(inner(a)) + 1

    assert native(outer, INT, result=INT)(5) == 11


_REPLAY = """
import sys
from pathlib import Path
from gscope.capture.interface.open_log import open_log
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries
text = "SELECT srcIP, count(*) FROM IP GROUP BY time/10 as tb, srcIP"
program = compile_queries([QueryText(text, "q")], CompileContext(("main",))).program
settings = CaptureSettings((InterfaceSettings("main", (sys.argv[1],)),))
summary = replay_capture(program, settings, open_log(Path(sys.argv[2]), program, settings))
print(summary.interfaces[0].accepted, "numba" in sys.modules)
"""


def test_a_replay_of_a_pcap_never_loads_numba(tmp_path: Path) -> None:
    capture = tmp_path / "a.pcap"
    write_pcap(TrafficProfile(), capture, 20_000)
    environment = {**os.environ, "GSCOPE_BOUNDSCHECK": ""}
    command = [sys.executable, "-c", _REPLAY, str(capture), str(tmp_path / "log")]
    done = subprocess.check_output(command, env=environment, cwd=ROOT, text=True)
    assert done == "20000 False\n"
