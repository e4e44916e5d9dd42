"""The memory of a capture is summed up before it begins, and refused with the remedy."""

from __future__ import annotations

import re

import pytest

from gscope.capture.interface.build_lftas import compiled_engines
from gscope.capture.interface.memory_budget import PlannedMemory, ensure_fits, planned_memory
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries

FLOWS = "SELECT tb, srcIP, count(*) AS c FROM IP GROUP BY time/10 AS tb, srcIP"
PROGRAM = compile_queries((QueryText(FLOWS, "flows"),), CompileContext(("one", "two"))).program
MB = 1 << 20


def settings(memory_bytes: int | None, fanout: int = 1) -> CaptureSettings:
    devices = [DeviceSettings(name, ring_bytes=16 * MB, fanout=fanout) for name in ("one", "two")]
    interfaces = tuple(InterfaceSettings(d.device, device=d, skew_ns=10**9) for d in devices)
    return CaptureSettings(interfaces, memory_bytes=memory_bytes, open_bytes=8 * MB)


def planned(limits: CaptureSettings, slots: int = 1 << 16) -> PlannedMemory:
    return planned_memory(PROGRAM.lftas, limits, LftaSettings(table_slots=slots), [(32, 48)])


def test_tables_are_counted_for_each_thread_of_each_interface() -> None:
    assert planned(settings(None)).tables == 2 * 80 * (1 << 16)
    assert planned(settings(None, fanout=3)).tables == 6 * 80 * (1 << 16)
    assert planned(settings(None), 1 << 10).tables == 2 * 80 * (1 << 10)
    assert planned(settings(None, fanout=3)).rings == 6 * 16 * MB
    assert planned(settings(None)).open_batches == 8 * MB


def test_pre_samples_are_counted() -> None:
    text = """
        SELECT tb, srcIP, len FROM IP WHERE len <= Kth_smallest_value$(len, 100)
        GROUP BY time/10 AS tb, srcIP, len SUPERGROUP srcIP
        CLEANING_WHEN count_distinct$(*) > 200 CLEANING_BY len <= Kth_smallest_value$(len, 100)"""
    lftas = compile_queries((QueryText(text, "q"),), CompileContext(("one", "two"))).program.lftas
    found = planned_memory(lftas, settings(None, fanout=3), LftaSettings(), [()])
    assert 6 * 8 * MB < found.pre_samples < 6 * 17 * MB
    assert found.total > found.pre_samples + found.rings
    with pytest.raises(UsageError, match=r"pre-samples \d+ MB"):
        ensure_fits(lftas, settings(100 * MB, fanout=3), LftaSettings(), [()])


def test_what_does_not_fit_is_refused_with_the_slots_that_would() -> None:
    limits = settings(120 * MB)
    sizes = LftaSettings(table_slots=1 << 20)
    with pytest.raises(UsageError, match="its limit is 120 MB") as refused:
        ensure_fits(PROGRAM.lftas, limits, sizes, [(32, 48)])
    slots = re.search(r"at most --table-slots (\d+)", str(refused.value))
    assert slots is not None
    fitting = LftaSettings(table_slots=int(slots[1]))
    assert ensure_fits(PROGRAM.lftas, limits, fitting, [(32, 48)]).total <= 120 * MB
    twice = LftaSettings(table_slots=2 * int(slots[1]))
    with pytest.raises(UsageError):
        ensure_fits(PROGRAM.lftas, limits, twice, [(32, 48)])


def test_rings_that_are_too_large_have_another_remedy() -> None:
    with pytest.raises(UsageError, match="smaller rings"):
        ensure_fits(PROGRAM.lftas, settings(MB), LftaSettings(), [(32, 48)])


def test_the_daemon_looks_before_it_captures() -> None:
    with pytest.raises(UsageError, match="group tables"):
        compiled_engines(PROGRAM, settings(100 * MB, fanout=1))
