"""Interfaces whose device is gone when the next daemon begins."""

from __future__ import annotations

from contextlib import closing
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gscope.capture.interface.open_log import open_log
from gscope.capture.live.devices import LiveInputs
from gscope.capture.live.resume import Continuation
from gscope.capture.live.uncaptured_interfaces import end_uncaptured
from gscope.capture.log.log import read_log
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import EndOfStream, Heartbeat, Hop, Punctuation
from gscope.queries.streams.thresholds import FULL_THRESHOLD, ThresholdSchedule

if TYPE_CHECKING:
    from pathlib import Path

QUERY = "SELECT tb, srcIP, count(*) FROM IP GROUP BY time/10 as tb, srcIP"


def test_the_last_heartbeat_has_the_schedule_that_an_earlier_daemon_left(tmp_path: Path) -> None:
    program = compile_queries([QueryText(QUERY, "q")], CompileContext(("main",), {})).program
    settings = CaptureSettings((InterfaceSettings("main", device=DeviceSettings("eth0")),))
    schedule = ThresholdSchedule.constant(FULL_THRESHOLD).lowered(1 << 60, 10**18, 2 * 10**18)
    with closing(open_log(tmp_path, program, settings)) as log:
        hop = Hop("q@main", 0, 0, 0, (("packets_total", 1),))
        beat = StreamHeartbeat("q@main", (Punctuation("tb", 10**8),), (hop,), schedule)
        log.write_heartbeat(1, 10**18, [beat])
    with closing(open_log(tmp_path, program, settings)) as log:
        capture: Any = SimpleNamespace(
            log=log, identities=count(2), observers=CaptureObservers(on_failure=lambda *_: None)
        )
        inputs = LiveInputs({}, {"main": "no such device"})
        end_uncaptured(capture, settings, inputs, Continuation(log, program, ["main"], 2 * 10**18))
    *_, last, end = read_log(tmp_path)
    assert isinstance(last, Heartbeat)
    assert last.schedule == schedule
    assert isinstance(end, EndOfStream)
