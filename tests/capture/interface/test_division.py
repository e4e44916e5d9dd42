"""LFTAs in parts: when a replay divides them, the same answers, and failures that end it."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.capture.lfta.lfta_collect import answer
from tests.support.requirements import CAPTURES, needs_captures

from gscope.capture.interface import division
from gscope.capture.interface.division import (
    BLOCK_BYTES,
    LEAST_LFTAS,
    MOST_PARTS,
    parts_of,
    with_block_bytes,
)
from gscope.capture.interface.open_log import open_log
from gscope.capture.lfta.interpreter import LftaInterpreter
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings, SavedPackets
from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.errors import StreamError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.capture.interface.summary import CaptureSummary
    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.queries.plan.program import Program

TEXTS = (
    "SELECT tb, srcIP, destIP, count(*), sum(len) FROM IP GROUP BY time/10 AS tb, srcIP, destIP",
    "SELECT tb, protocol, max(len), min(ttl) FROM IPV4 GROUP BY time/5 AS tb, protocol",
    "SELECT time, srcIP, srcPort, flags FROM TCP WHERE flags & 2 = 2",
    "SELECT tb, destPort, count(*) FROM UDP GROUP BY time/10 AS tb, destPort",
    "SELECT tb, hop_limit, count(*) FROM IPV6 GROUP BY time/10 AS tb, hop_limit",
    "SELECT tb, len, count(*) FROM ETH GROUP BY time/60 AS tb, len",
    "SELECT time, srcIP, str_truncate(UDP_data, 8) FROM UDP WHERE len > 100",
    "SELECT tb, icmp_type, count(*) FROM ICMP GROUP BY time/10 AS tb, icmp_type",
    "SELECT tb, approx_count_distinct(srcIP) FROM IP GROUP BY time/10 AS tb",
)
"""More than two parts' worth; no two read the same packets in the same way."""


def program_of(*interfaces: str) -> Program:
    texts = [QueryText(text, f"q{number}") for number, text in enumerate(TEXTS)]
    return compile_queries(texts, CompileContext(interfaces)).program


def settings_of(*paths: str | Path, **more: Any) -> CaptureSettings:
    return CaptureSettings((InterfaceSettings("up", tuple(map(str, paths))),), **more)


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def set_cores(number: int) -> None:
        monkeypatch.setattr(division, "usable_cores", lambda: number)

    return set_cores


def test_a_part_has_a_core_and_some_lftas(cores: Callable[[int], None]) -> None:
    program, settings = program_of("up"), settings_of("a.pcap")
    found = []
    for number in (1, 2, 64):
        cores(number)
        found.append(parts_of(program, settings))
    assert found == [1, 2, len(TEXTS) // LEAST_LFTAS]
    many = replace(program, lftas=program.lftas * MOST_PARTS)
    assert parts_of(many, settings) == MOST_PARTS
    few = replace(program, lftas=program.lftas[: 2 * LEAST_LFTAS - 1])
    assert parts_of(few, settings) == 1


LIVE = (InterfaceSettings("up", device=DeviceSettings("eth0")),)
TOGETHER: list[dict[str, Any]] = [
    {"speed": 1.0},
    {"heartbeat_every_tick": True},
    {"saved": SavedPackets(-1, ())},
    {"shedding": SheddingSettings(SheddingMode.AUTO)},
    {"interfaces": LIVE},
    {"interfaces": (InterfaceSettings("up", ("a",)), InterfaceSettings("down", ("b",)))},
]


@pytest.mark.parametrize("more", TOGETHER, ids=lambda each: next(iter(each)))
def test_lftas_run_together_where_they_decide_together_or_have_to_wait(
    cores: Callable[[int], None], more: dict[str, Any]
) -> None:
    cores(8)
    program, settings = program_of("up", "down"), settings_of("a.pcap")
    assert parts_of(program, settings) > 1
    apart = replace(settings, **more)
    assert parts_of(program, apart) == 1
    assert with_block_bytes(program, apart) is apart


def test_parts_have_large_blocks_unless_their_size_is_set(cores: Callable[[int], None]) -> None:
    cores(2)
    program = program_of("up")
    assert with_block_bytes(program, settings_of("a")).block_bytes == BLOCK_BYTES
    assert with_block_bytes(program, settings_of("a", block_bytes=9)).block_bytes == 9
    off = SheddingSettings()
    assert with_block_bytes(program, settings_of("a", shedding=off)).block_bytes == BLOCK_BYTES


def replayed(
    folder: Path, settings: CaptureSettings, *, is_interpreted: bool = False
) -> tuple[CaptureSummary, dict[str, list[dict[str, Any]]]]:
    program = program_of("up")

    def interpreters(interface: str, emit: Callable[[str, ColumnBatch], None]) -> LftaInterpreter:
        return LftaInterpreter(program.lftas, interface, emit)

    log = open_log(folder, program, settings)
    try:
        engines = interpreters if is_interpreted else None
        summary = replay_capture(program, settings, log, engines=engines)
    finally:
        log.close()
    rows: dict[str, list[dict[str, Any]]] = {lfta.stream("up"): [] for lfta in program.lftas}
    for message in read_log(folder):
        if isinstance(message, Batch):
            rows[message.stream] += pq.read_table(folder / message.path).to_pylist()
    return summary, rows


@needs_captures
@pytest.mark.parametrize(
    "capture", ["ndpi-netflix.pcap", "ndpi-fuzz-2006-06-26-2594.pcap", "ndpi-mumble.pcapng"]
)
def test_parts_answer_as_plain_loops_over_packets(
    tmp_path: Path, cores: Callable[[int], None], capture: str
) -> None:
    path = CAPTURES / capture
    cores(1)
    loops, expected = replayed(tmp_path / "loops", settings_of(path), is_interpreted=True)
    cores(3)
    settings = settings_of(path, block_bytes=20_000, output_rows=128, table_slots=64)
    assert parts_of(program_of("up"), settings) == 2
    summary, found = replayed(tmp_path / "parts", settings)
    assert summary.interfaces == loops.interfaces
    for lfta in program_of("up").lftas:
        stream = lfta.stream("up")
        mine, theirs = answer(lfta, found[stream]), answer(lfta, expected[stream])
        if not lfta.is_aggregation:
            mine, theirs = Counter(map(repr, mine)), Counter(map(repr, theirs))
        assert mine == theirs, lfta.name
        counted = summary.lftas[stream]
        assert counted["tuples_in_total"] == loops.lftas[stream]["tuples_in_total"]
        assert counted["packets_total"] == loops.lftas[stream]["packets_total"]
    assert not any(thread.name.startswith("lftas") for thread in threading.enumerate())


@needs_captures
def test_a_log_that_cannot_be_written_by_a_part_ends_the_replay(
    tmp_path: Path, cores: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cores(2)
    append = StreamLog.append

    def broken(self: StreamLog, stream: str, *arguments: Any) -> None:
        # The second LFTA runs in the thread of the second part.
        if threading.current_thread().name.startswith("lftas"):
            raise StreamError(stream)
        append(self, stream, *arguments)

    monkeypatch.setattr(StreamLog, "append", broken)
    settings = settings_of(CAPTURES / "ndpi-netflix.pcap", output_rows=128)
    with pytest.raises(StreamError):
        replayed(tmp_path / "log", settings)
