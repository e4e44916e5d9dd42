"""Thresholds that follow the load of a live capture.

They are held beside a query over the same packets that keeps them all.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow.parquet as pq
import pytest
from tests.capture.sources.af_packet.live_frames import udp_frame
from tests.capture.sources.af_packet.network import DEVICE, own_network, send

from gscope.capture.interface.open_log import open_log
from gscope.capture.live.devices import Devices
from gscope.capture.live.live_capture import capture_live
from gscope.capture.live.live_interface import LiveInterface, RingInterface
from gscope.capture.live.stop import LiveStop
from gscope.capture.log.log import read_log
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.capture.shedding.load_control import InterfaceLoad
from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.capture.sources.base import SourceStats
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, HashKey, hash_terms
from gscope.queries.plan.sampling.moving_samples import moving_samples
from gscope.queries.streams.messages import Batch, Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gscope.capture.interface.summary import CaptureSummary
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message
    from gscope.queries.streams.thresholds import ThresholdSchedule

EPOCH_NS = 200_000_000
FLOWS = 200
QUERIES = f"""
DEFINE {{ query_name flows; }}
SELECT tb, srcPort, count(*) FROM UDP GROUP BY time_ns/{EPOCH_NS} as tb, srcPort;
DEFINE {{ query_name every; }}
SELECT tb, srcPort, count(*) FROM UDP GROUP BY time_ns/{EPOCH_NS} as tb, srcPort NOT SAMPLED;
"""
SHEDDING = SheddingSettings(SheddingMode.AUTO, seed=99, min_rate=0.1)


def program() -> Program:
    return compile_queries(
        [QueryText(QUERIES, "q")], CompileContext(("main",), {}, samples=True)
    ).program


def captured(folder: Path, compiled: Program, fanout: int, seconds: float) -> CaptureSummary:
    """Capture packets of all flows, sent again and again for some time."""
    device = DeviceSettings(DEVICE, ring_bytes=4 << 20, fanout=fanout)
    settings = CaptureSettings(
        (InterfaceSettings("main", skew_ns=100_000_000, device=device),),
        heartbeat_interval_ns=100_000_000,
        shedding=SHEDDING,
    )
    stop, log = LiveStop(), open_log(folder, compiled, settings)

    def talk() -> None:
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                send(udp_frame(number, 1000 + number % FLOWS) for number in range(FLOWS))
                threading.Event().wait(0.01)
        finally:
            stop.request()

    with own_network(), Devices(settings) as devices:
        actor = threading.Thread(target=talk)
        observers = CaptureObservers(on_begin=actor.start)
        summary = capture_live(
            compiled, settings, log, devices.inputs, stop=stop, observers=observers
        )
        actor.join()
        log.close()
    return summary


def counted(folder: Path, messages: list[Message], lfta: str) -> Counter[tuple[int, int]]:
    """The packets of each flow in each epoch, as all partial tuples together say."""
    found: Counter[tuple[int, int]] = Counter()
    for message in messages:
        if isinstance(message, Batch) and message.stream == f"{lfta}@main":
            for row in pq.read_table(folder / message.path).to_pylist():
                (count,) = (v for n, v in row.items() if n not in ("tb", "srcPort"))
                found[row["tb"], row["srcPort"]] += count
    return found


def least(schedule: ThresholdSchedule, epoch: int) -> int:
    """The least threshold of an epoch, in a loop over its steps."""
    first, end = epoch * EPOCH_NS, (epoch + 1) * EPOCH_NS
    times = [first, *(s.from_ns for s in schedule.steps if first <= s.from_ns < end)]
    return min(schedule.at(each).threshold for each in times)


@contextmanager
def overload() -> Iterator[None]:
    """An overload until the rate has fallen three times, however slow this machine is."""
    begins: list[float] = []
    falls: list[float] = []

    def load(_: LiveInterface) -> InterfaceLoad:
        now = time.monotonic()
        begins.append(now)
        is_overloaded = now - begins[0] > 0.5 and len(falls) < 3
        if is_overloaded and (not falls or now - falls[-1] > 0.15):
            falls.append(now)
        return InterfaceLoad(0.9 if is_overloaded else 0.1, 0, (0,))

    with mock.patch.object(LiveInterface, "load", load):
        yield


@pytest.mark.live
@pytest.mark.parametrize("fanout", [1, 3])
def test_groups_below_the_threshold_of_their_epoch_are_whole(tmp_path: Path, fanout: int) -> None:
    compiled, folder = program(), tmp_path / "log"
    assert len(moving_samples(compiled)[0]) == 1
    with overload():
        summary = captured(folder, compiled, fanout, 3.0)
    messages = read_log(folder)
    last = {m.stream: m.schedule for m in messages if isinstance(m, Heartbeat)}
    names = {lfta.sampling is not None: lfta.name for lfta in compiled.lftas}
    sampled, whole = names[True], names[False]
    schedule = last[f"{sampled}@main"]
    assert schedule is not None
    assert last[f"{whole}@main"] is None
    full, kept = counted(folder, messages, whole), counted(folder, messages, sampled)
    key, thresholds, partial = HashKey.of_seed(SHEDDING.seed), set(), 0
    for (epoch, port), packets in full.items():
        threshold = least(schedule, epoch)
        thresholds.add(threshold)
        if hash_terms((port,), (GsqlType.INT,), key) <= threshold:
            assert kept[epoch, port] == packets
        else:
            partial += kept[epoch, port] > 0
    assert set(kept) <= set(full)
    assert partial, "rows that the job has to leave out"
    assert FULL_THRESHOLD in thresholds
    assert min(thresholds) < schedule.steps[-1].threshold, "it fell, and rose again"
    assert 0.1 <= summary.least_rate <= 0.25
    (interface,) = summary.interfaces
    assert interface.received == interface.accepted + interface.shed
    # The other query has taken every packet, but groups of this one are missing.
    assert interface.shed == 0


@pytest.mark.parametrize(("waited_ns", "busy_ns"), [(70, 30), (100, 0), (None, 20)])
def test_a_thread_is_busy_unless_it_waits_for_packets(
    monkeypatch: pytest.MonkeyPatch, waited_ns: int | None, busy_ns: int
) -> None:
    source: Any = SimpleNamespace(stats=SourceStats(waited_ns=None if waited_ns is None else 5))
    clock: Any = SimpleNamespace(real_ns=lambda: 0, monotonic_ns=lambda: 0)
    unused: Any = None
    interface = RingInterface("main", source, unused, {}, 0, unused, clock)
    now_ns = 1000
    clock_of_process = SimpleNamespace(monotonic_ns=lambda: now_ns)
    monkeypatch.setattr("gscope.capture.live.live_interface.time", clock_of_process)
    before_ns = interface.busy_ns
    now_ns += 100
    interface.worked_ns += 20
    if waited_ns is not None:
        source.stats.waited_ns += waited_ns
    assert interface.busy_ns - before_ns == busy_ns
