"""The pump changes nothing: the same messages, counters and damage as block by block."""

from __future__ import annotations

import dataclasses
import os
import random
import struct
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.capture.lfta.lfta_builders import flow, ipv4, udp

from gscope.capture.interface.open_log import open_log
from gscope.capture.log.log import read_log
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.replay import trace_clock
from gscope.capture.replay.bulk_path import Pump, Pumped
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.replay.replay_stop import ReplayStop
from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.queries.plan.program import Program
from gscope.queries.streams.messages import Batch, Heartbeat

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000


def frame(number: int, size: int = 20) -> bytes:
    return ipv4(number % 3, 9, udp(1000 + number % 7, 53, b"." * size))


def capture_of(count: int, *, steps_back: bool = False, seed: int = 1) -> bytes:
    """A pcap of ``count`` packets, 40 a second.

    With ``steps_back`` some are out of order, and some late.
    """
    chance = random.Random(seed)
    records = []
    for number in range(count):
        time = 1_000 * SECOND + number * SECOND // 40
        if steps_back and chance.random() < 0.05:
            time -= chance.randrange(4 * SECOND)
        data = frame(number, chance.choice([20, 20, 30, 900]))
        records.append(
            struct.pack("<IIII", time // SECOND, time % SECOND, len(data), len(data)) + data
        )
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(records)


def outcome(path: Path, folder: Path, **settings: Any) -> tuple[Any, ...]:
    """All that a replay says and leaves, but times of the machine."""
    lfta = dataclasses.replace(flow(), interfaces=("main",), has_interface_column=True)
    program = Program(("main",), (lfta,), (), (), ())
    interface = InterfaceSettings("main", (str(path),), skew_ns=2 * SECOND)
    chosen = CaptureSettings((interface,), read_ahead=False, **settings)
    log = open_log(folder, program, chosen)
    progress: list[tuple[int, int]] = []
    try:
        summary = replay_capture(
            program,
            chosen,
            log,
            observers=CaptureObservers(
                on_progress=lambda reported: progress.append(
                    (reported.packets, reported.input_bytes)
                )
            ),
        )
    finally:
        log.close()
    said: list[Any] = []
    for message in read_log(folder):
        if isinstance(message, Batch):
            said.append(pq.read_table(folder / message.path).to_pylist())
        elif isinstance(message, Heartbeat):
            counters = [hop.counters for hop in message.trace]
            said.append((message.clock_ns, message.punctuations, counters))
    return summary.interfaces, progress, said


@pytest.fixture
def pumped(monkeypatch: pytest.MonkeyPatch) -> list[Pumped]:
    """What pumps did."""
    done: list[Pumped] = []
    run = Pump.run

    def noted(self: Pump, *arguments: int) -> Pumped | None:
        result = run(self, *arguments)
        if result is not None:
            done.append(result)
        return result

    monkeypatch.setattr(Pump, "run", noted)
    return done


def compare(path: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[Any, ...]:
    """The outcome, which is the same without a pump."""
    folder = path.parent
    # Heartbeats also come when the machine takes its time, which is longer when a kernel is
    # compiled first.
    monkeypatch.setattr(trace_clock, "HEARTBEAT_SECONDS", float("inf"))
    found = outcome(path, folder / "pumped", **settings)
    with monkeypatch.context() as patch:
        patch.setattr(Pump, "between", lambda _source, _engine: None)
        plain = outcome(path, folder / "plain", **settings)
    assert (plain[0], plain[2]) == (found[0], found[2])
    # Damage is seen in a block that is not handed out; the pump has counted its bytes by then.
    assert plain[1] == found[1] or found[0][0].damage
    return found


@pytest.mark.parametrize("block_bytes", [64, 1000, 4096, 10_000])
@pytest.mark.parametrize("output_rows", [1, 1 << 14])
@pytest.mark.parametrize("steps_back", [False, True])
def test_blocks_pass_as_they_would_one_by_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pumped: list[Pumped],
    block_bytes: int,
    output_rows: int,
    steps_back: bool,
) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(capture_of(2000, steps_back=steps_back))
    found = compare(
        path,
        monkeypatch,
        block_bytes=block_bytes,
        output_rows=output_rows,
        heartbeat_interval_ns=5 * SECOND,
    )
    # No record is in a block of 64 bytes before that has grown.
    assert bool(sum(each.packets for each in pumped)) == (block_bytes > 64)
    (summary,) = found[0]
    assert summary.received == 2000
    assert bool(summary.late) == steps_back


@pytest.mark.parametrize("cut", [1, 15, 16, 17, 40, 700])
def test_a_cut_file_is_used_up_to_its_last_whole_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pumped: list[Pumped], cut: int
) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(capture_of(500)[:-cut])
    (summary,), *_ = compare(path, monkeypatch, block_bytes=4096)
    assert pumped
    assert summary.damage or summary.received == 499


def test_a_damaged_record_ends_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = capture_of(500)
    path = tmp_path / "a.pcap"
    path.write_bytes(whole + struct.pack("<IIII", 1012, 0, 1 << 30, 1 << 30) + whole[24:])
    (summary,), *_ = compare(path, monkeypatch, block_bytes=4096)
    assert summary.received == 500
    assert "claims" in summary.damage[0]


@pytest.mark.parametrize("size", [100_000, 10_000_000])
def test_a_file_that_shrinks_or_grows_meanwhile_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pumped: list[Pumped], size: int
) -> None:
    whole = capture_of(4000)
    path = tmp_path / "a.pcap"
    path.write_bytes(whole[:200_000])
    run = Pump.run

    def resized(self: Pump, *arguments: int) -> Pumped | None:
        if path.stat().st_size == 200_000:
            with path.open("r+b") as file:
                file.seek(0, os.SEEK_END)
                file.write(whole[200_000:])
                file.truncate(min(size, len(whole)))
        return run(self, *arguments)

    monkeypatch.setattr(Pump, "run", resized)
    (summary,), *_ = outcome(path, tmp_path / "log", block_bytes=4096)
    assert pumped
    assert summary.accepted == summary.received
    assert (summary.received == 4000) == (size > 200_000)
    assert bool(summary.damage) == (size < 200_000)


def test_a_stop_is_heeded_between_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pumped: list[Pumped]
) -> None:
    monkeypatch.setattr("gscope.capture.replay.bulk_path.PASS_BYTES", 8192)
    path = tmp_path / "a.pcap"
    path.write_bytes(capture_of(4000))
    lfta = dataclasses.replace(flow(), interfaces=("main",), has_interface_column=True)
    program = Program(("main",), (lfta,), (), (), ())
    chosen = CaptureSettings(
        (InterfaceSettings("main", (str(path),)),),
        read_ahead=False,
        block_bytes=4096,
        heartbeat_interval_ns=1000 * SECOND,
    )
    stop = ReplayStop()
    run = Pump.run

    def stopped(self: Pump, *arguments: int) -> Pumped | None:
        result = run(self, *arguments)
        stop.request()
        return result

    monkeypatch.setattr(Pump, "run", stopped)
    log = open_log(tmp_path / "log", program, chosen)
    try:
        summary = replay_capture(program, chosen, log, stop=stop)
    finally:
        log.close()
    (interface,) = summary.interfaces
    assert len(pumped) == 1
    assert 0 < interface.accepted < 1000
