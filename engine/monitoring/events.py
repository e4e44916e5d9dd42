"""What the HFTA job tells its supervisor: one JSON object a line on standard output.

======== =====================================================================
event    fields
======== =====================================================================
ready    ``session_s``: the Spark session stands; seconds since the job began
commit   ``step``, ``outputs`` (query, path, rows), ``watermarks``, ``step_s``, ``late_tuples``
         (rows below an operator's watermark when they came, in no answer, by query), ``undecodable``
         and ``wrapped_sums`` (see ``monitoring/counts.py``); all since the run began
finished ``steps``, ``phases`` (seconds by name)
error    ``message``: one sentence; ``is_final``: whether it would fail again; the job ends with code 1
failed   ``message``: one phrase; the job ends and can be started again
java     ``pid``: of a Java it has started, which must not outlive it
alive    Java answers; every second. While a step is evaluated: ``step``, its number, ``step_s``, for how
         long, and ``still_s``: for how long no task of it has ended
======== =====================================================================
"""

from __future__ import annotations

import json
import sys
import threading
from contextlib import suppress
from typing import IO, Any


class Events:
    """Writes events as lines; may be used from several threads."""

    def __init__(self, file: IO[str] | None = None) -> None:
        self._file = file or sys.stdout
        self._lock = threading.Lock()

    def send(self, event: str, **fields: Any) -> None:
        """Write one event. A supervisor that is gone is noticed on standard input, not here."""
        line = json.dumps({"event": event, **fields})
        # a supervisor that is gone closes standard input as well, which ends the job
        with self._lock, suppress(BrokenPipeError):
            self._file.write(line + "\n")
            self._file.flush()
