"""Several threads on one interface: the same rows as one, and no row below a promise."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.capture.lfta.lfta_builders import flow
from tests.capture.sources.af_packet.live_frames import udp_frame
from tests.capture.sources.af_packet.network import DEVICE, own_network, run_ip, send
from tests.support.gscope_command import wait_for

from gscope.capture.interface.open_log import open_log
from gscope.capture.live.devices import Devices
from gscope.capture.live.fanout_interface import Lane, ensure_orders_survive, least_promises
from gscope.capture.live.live_capture import capture_live
from gscope.capture.live.stop import LiveStop
from gscope.capture.log.log import read_log
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.capture.sources.af_packet.fanout_rings import FanoutSource
from gscope.errors import CaptureError, UsageError
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import PacketField
from gscope.queries.plan.program import Program
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Punctuation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.capture.interface.summary import CaptureSummary
    from gscope.queries.plan.program import Lfta

INTERFACE = "main"
FLOWS = 50


def captured(
    folder: Path, act: Callable[[Any], object], fanout: int, lfta: Lfta | None = None, **more: Any
) -> tuple[CaptureSummary, Any]:
    """Capture until ``act``, which gets the source, returns; the summary and the source."""
    lfta = dataclasses.replace(lfta or flow(), interfaces=(INTERFACE,))
    program = Program((INTERFACE,), (lfta,), (), (), ())
    device = DeviceSettings(DEVICE, ring_bytes=4 << 20, fanout=fanout)
    settings = CaptureSettings(
        (InterfaceSettings(INTERFACE, skew_ns=100_000_000, device=device),),
        heartbeat_interval_ns=100_000_000,
        **more,
    )
    stop = LiveStop()
    log = open_log(folder, program, settings)
    with Devices(settings) as devices:

        def follow() -> None:
            try:
                act(devices.sources[INTERFACE])
            finally:
                stop.request()

        # In this network, not in that of a thread that came before.
        actor = threading.Thread(target=follow)
        summary = capture_live(
            program,
            settings,
            log,
            devices.inputs,
            stop=stop,
            observers=CaptureObservers(on_begin=actor.start),
        )
        actor.join()
        log.close()
        return summary, devices.sources[INTERFACE]


def wait_for_heartbeats(folder: Path, count: int) -> None:
    """Wait until the log has ``count`` more heartbeats."""

    def logged() -> int:
        return sum(isinstance(message, Heartbeat) for message in read_log(folder))

    wanted = logged() + count
    wait_for(lambda: logged() >= wanted, f"{count} heartbeats")


def rows(folder: Path) -> Counter[tuple[Any, ...]]:
    """Packets by source port, as all partial tuples of the log together say."""
    found: Counter[tuple[Any, ...]] = Counter()
    for message in read_log(folder):
        if isinstance(message, Batch):
            for row in pq.read_table(folder / message.path).to_pylist():
                found[row["srcPort"], row["destPort"]] += row["cnt"]
    return found


def ensure_promises_are_kept(folder: Path) -> int:
    """Check that no row is below a promise made before it; the number of heartbeats."""
    bounds: dict[str, int] = {}
    beats = 0
    messages = read_log(folder)
    for message in messages:
        if isinstance(message, Heartbeat):
            beats += 1
            for promise in message.punctuations:
                assert promise.bound >= bounds.get(promise.column, promise.bound)
                bounds[promise.column] = promise.bound
        elif isinstance(message, Batch):
            for extent in message.extents:
                assert extent.least >= bounds.get(extent.column, extent.least)
    assert isinstance(messages[-1], EndOfStream)
    return beats


@pytest.mark.live
@pytest.mark.parametrize("fanout", [1, 3])
def test_any_number_of_threads_gives_the_same_rows(tmp_path: Path, fanout: int) -> None:
    with own_network():

        def talk(_: object) -> None:
            for _ in range(10):
                send(udp_frame(number, 1000 + number % FLOWS) for number in range(10 * FLOWS))
                threading.Event().wait(0.05)
            # Promises are made after packets, too.
            wait_for_heartbeats(tmp_path / "log", 5)

        summary, source = captured(tmp_path / "log", talk, fanout)
    (interface,) = summary.interfaces
    assert (interface.received, interface.accepted) == (100 * FLOWS, 100 * FLOWS)
    assert rows(tmp_path / "log") == {(1000 + n, 53): 100 for n in range(FLOWS)}
    assert ensure_promises_are_kept(tmp_path / "log") >= 5
    (counters,) = summary.lftas.values()
    assert counters["tuples_in_total"] == 100 * FLOWS
    if fanout > 1:
        assert isinstance(source, FanoutSource)
        assert sum(ring.stats.received_packets > 0 for ring in source.rings) > 1
        assert source.stats.received_packets == 100 * FLOWS


@pytest.mark.live
def test_promises_follow_the_clock_while_all_threads_are_silent(tmp_path: Path) -> None:
    with own_network():
        log = tmp_path / "log"
        summary, _ = captured(log, lambda _: wait_for_heartbeats(log, 4), 2)
    assert summary.interfaces[0].received == 0
    assert ensure_promises_are_kept(tmp_path / "log") >= 4


@pytest.mark.live
def test_a_shared_interface_that_vanishes_has_failed_for_good(tmp_path: Path) -> None:
    with own_network():

        def vanish(source: Any) -> None:
            run_ip("link", "del", DEVICE)
            wait_for(lambda: source.failure, "the end of the interface")

        summary, _ = captured(tmp_path / "log", vanish, 2)
    assert summary.failed == {INTERFACE: f"{DEVICE} vanished and has not come back"}
    assert summary.interfaces[0].damage == (summary.failed[INTERFACE],)


class ScriptedRing:
    """A ring whose packets are what a test says; waiting ends with ``wake``."""

    name = "main"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.threads: set[int] = set()
        self.lags: list[int] = []
        self._woken = threading.Event()

    def take(self, timeout_s: float, until_ns: int) -> bool:
        self.threads.add(threading.get_ident())
        if self.error is not None:
            raise self.error
        self._woken.wait(timeout_s)
        self._woken.clear()
        return True

    def note_lag(self, now_ns: int) -> None:
        self.lags.append(now_ns)

    def wake(self) -> None:
        self._woken.set()


def scripted_lane(error: Exception | None = None) -> tuple[Lane, ScriptedRing]:
    ring = ScriptedRing(error)
    return Lane(ring), ring  # type: ignore[arg-type]  # all of a RingInterface that a lane uses


def test_what_is_asked_of_a_lane_is_found_out_by_its_thread() -> None:
    lane, ring = scripted_lane()
    assert lane.ask(threading.get_ident).result() == threading.get_ident()
    lane.start()
    found = {lane.ask(threading.get_ident).result(timeout=10) for _ in range(20)}
    lane.stop()
    lane.stop()
    assert found == ring.threads
    assert threading.get_ident() not in found
    assert lane.ask(threading.get_ident).result() == threading.get_ident()
    assert lane.blocks == len(ring.lags) > 0


def test_a_lane_that_failed_still_answers_and_hands_errors_on() -> None:
    lane, _ = scripted_lane(CaptureError("the ring is broken"))
    lane.start()
    assert lane.ask(lambda: 7).result(timeout=10) == 7
    with pytest.raises(ZeroDivisionError):
        lane.ask(lambda: 1 // 0).result(timeout=10)
    lane.stop()
    assert str(lane.failure) == "the ring is broken"


def test_a_promise_is_the_least_of_all_that_promise() -> None:
    one = (Punctuation("tb", 7), Punctuation("time", 70))
    other = (Punctuation("time", 69), Punctuation("tb", 8))
    assert least_promises([one, other]) == (Punctuation("tb", 7), Punctuation("time", 69))
    assert least_promises([one, (Punctuation("tb", 9),)]) == (Punctuation("tb", 7),)


def test_a_declared_order_cannot_be_shared_by_threads() -> None:
    order = call("increasing", PacketField("tb", flow().keys[0].expression.type, is_nullable=False))
    lfta = dataclasses.replace(flow(), interfaces=(INTERFACE,), declared=(order,))
    with pytest.raises(UsageError, match="declares an ordering of packets"):
        ensure_orders_survive(INTERFACE, [lfta])
    ensure_orders_survive("other", [lfta])
