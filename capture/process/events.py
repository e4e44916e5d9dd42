"""The events of the capture daemon: what its parts report, and how often."""

from __future__ import annotations

import time
from typing import IO, TYPE_CHECKING

from gscope.queries.streams.event_codec import EventWriter
from gscope.queries.streams.process_events import InputReport, InterfaceFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.streams.process_events import CaptureProgress

PROGRESS_SECONDS = 0.1
"""Progress is not reported more often."""


class CaptureEvents(EventWriter):
    """Writes the events of the capture daemon; may be used from several threads.

    Args:
        file: the standard output of the daemon.
        monotonic: the clock, in seconds.
    """

    def __init__(self, file: IO[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(file)
        self._monotonic = monotonic
        self._reported_s: float | None = None

    def on_interface_failure(self, interface: str, message: str) -> None:
        """Report that an interface ends before the others, and why."""
        self.send(InterfaceFailed(interface, message))

    def on_input_report(self, name: str, message: str) -> None:
        """Report that the state of a relay's input has changed, and how."""
        self.send(InputReport(name, message))

    def on_progress(self, progress: CaptureProgress) -> None:
        """Report progress, unless the last report is less than ``PROGRESS_SECONDS`` old."""
        now_s = self._monotonic()
        if self._reported_s is None or now_s - self._reported_s >= PROGRESS_SECONDS:
            self._reported_s = now_s
            self.send(progress)
