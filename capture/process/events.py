"""What the capture daemon tells its supervisor: one JSON object a line on standard output.

========= ============================================================================================
event     fields
========= ============================================================================================
listening ``socket``: its path; packets are let in and consumers may subscribe
progress  ``packets``, ``input_bytes``, ``size_bytes`` (null: unknown), ``clock_ns``, ``dropped``; at most 10 a
          second
alive     ``silent_s``: how long the most silent capture thread has not got on; live, twice a second
failed    ``interface``, ``message``: it is captured no more; the others are
summary   the fields of ``CaptureSummary``: all input is in the log
error     ``message``: one sentence, or one a line; the daemon ends with ``exit_code``
========= ============================================================================================
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


class Events:
    """Writes events as lines; may be used from several threads.

    A supervisor that is gone is noticed elsewhere (its pipe closes), so that it is no error here.
    """

    def __init__(self, file: IO[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._told_s: float | None = None

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
        """Tell that an interface ends before the others, and why."""
        self.send("failed", interface=interface, message=message)

    def on_progress(self, progress: Progress) -> None:
        """Tell how far the replay is, unless that was told less than ``PROGRESS_SECONDS`` ago."""
        now_s = self._monotonic()
        if self._told_s is None or now_s - self._told_s >= PROGRESS_SECONDS:
            self._told_s = now_s
            self.send(
                "progress",
                packets=progress.packets,
                input_bytes=progress.input_bytes,
                size_bytes=progress.size_bytes,
                clock_ns=progress.clock_ns,
                dropped=progress.dropped,
            )
