"""The events that the capture daemon reports to its supervisor, as JSON lines on standard output.

========= ========================================================================================
event     fields
========= ========================================================================================
listening ``socket``: its path; packets are let in and consumers may subscribe
progress  ``packets``, ``input_bytes``, ``size_bytes`` (null: unknown), ``clock_ns``, ``dropped``;
          at most 10 a second
alive     ``silent_s``: time since the last turn of the capture thread that has been silent
          longest; live captures only, twice a second
failed    ``interface``, ``message``: this interface is not captured any longer; the others are
summary   the fields of ``CaptureSummary``: all input is in the log
error     ``message``: one sentence, or one a line; the daemon exits with ``exit_code``
========= ========================================================================================
"""

from __future__ import annotations

import json
import threading
import time
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.progress import Progress

PROGRESS_SECONDS = 0.1
"""Shortest time between two ``progress`` events."""


class Events:
    """A writer of events as lines, for several threads.

    The end of the supervisor is not an error here: the daemon detects it by the supervisor's pipe.
    """

    def __init__(self, file: IO[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._progress_s: float | None = None

    def send(self, event: str, **fields: Any) -> None:
        """Write one event."""
        line = json.dumps({"event": event, **fields}) + "\n"
        with self._lock:
            try:
                self._file.write(line)
                self._file.flush()
            except (BrokenPipeError, ValueError):
                return

    def on_interface_failure(self, interface: str, message: str) -> None:
        """Report that an interface ends before the others, and why."""
        self.send("failed", interface=interface, message=message)

    def on_progress(self, progress: Progress) -> None:
        """Report progress, unless that was done less than ``PROGRESS_SECONDS`` ago."""
        now_s = self._monotonic()
        if self._progress_s is None or now_s - self._progress_s >= PROGRESS_SECONDS:
            self._progress_s = now_s
            self.send(
                "progress",
                packets=progress.packets,
                input_bytes=progress.input_bytes,
                size_bytes=progress.size_bytes,
                clock_ns=progress.clock_ns,
                dropped=progress.dropped,
            )
