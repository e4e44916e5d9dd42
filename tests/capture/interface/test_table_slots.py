"""Group tables of small captures: no more slots than groups are likely, and the same rows."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from gscope.capture.interface.build_lftas import BYTES_PER_SLOT, LEAST_SLOTS, compiled_engines
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

MOST = LftaSettings().table_slots
TEXT = "SELECT tb, srcIP, count(*) FROM IP GROUP BY time/10 AS tb, srcIP"


def slots(*interfaces: InterfaceSettings, most: int | None = None) -> int:
    """Return the slots of the table for IPv4 in the first interface."""
    names = tuple(each.name for each in interfaces)
    program = compile_queries([QueryText(TEXT, "q")], CompileContext(names)).program
    settings = CaptureSettings(interfaces, table_slots=most)
    engine = compiled_engines(program, settings)(names[0], lambda *_: None)
    (lfta,) = program.lftas
    counters = engine.lfta_counters(lfta.name)
    assert counters.table_slots % 2 == 0
    return counters.table_slots // 2


def capture(path: Path, size: int) -> str:
    path.write_bytes(bytes(size))
    return str(path)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, LEAST_SLOTS),
        (LEAST_SLOTS * BYTES_PER_SLOT - 1, LEAST_SLOTS),
        (LEAST_SLOTS * BYTES_PER_SLOT, 2 * LEAST_SLOTS),
        (2_000_000, 1 << 14),
        (MOST * BYTES_PER_SLOT, MOST),
        (10 * MOST * BYTES_PER_SLOT, MOST),
    ],
)
def test_a_capture_has_a_slot_for_each_128_bytes(tmp_path: Path, size: int, expected: int) -> None:
    files = (capture(tmp_path / "a.pcap", size),)
    assert slots(InterfaceSettings("up", files)) == expected


def test_files_of_an_interface_count_together_and_interfaces_do_not(tmp_path: Path) -> None:
    paths = [capture(tmp_path / name, 300_000) for name in ("a.pcap", "b.pcap")]
    assert slots(InterfaceSettings("up", tuple(paths))) == 1 << 13
    each = [InterfaceSettings(name, (path,)) for name, path in zip("ab", paths, strict=True)]
    assert slots(*each) == 1 << 12


def test_where_the_size_of_the_input_is_unknown_all_slots_are_there(tmp_path: Path) -> None:
    small = capture(tmp_path / "a.pcap", 1000)
    packed = tmp_path / "b.pcap.gz"
    packed.write_bytes(gzip.compress(bytes(100_000_000)))
    for other in (
        InterfaceSettings("b", (str(packed),)),
        InterfaceSettings("b", ("-",)),
        InterfaceSettings("b", (str(tmp_path / "missing"),)),
        InterfaceSettings("b", (small,), reads_flows=True),
    ):
        assert slots(InterfaceSettings("a", (small,)), other) == MOST
    assert slots(InterfaceSettings("a", device=DeviceSettings("lo"))) == MOST


def test_no_capture_gets_more_than_is_allowed(tmp_path: Path) -> None:
    large = (capture(tmp_path / "a.pcap", 2_000_000),)
    assert slots(InterfaceSettings("up", large), most=64) == 64
    assert slots(InterfaceSettings("up", large), most=1 << 20) == 1 << 14
