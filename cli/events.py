"""What processes, threads and the user report to the supervisor."""

from __future__ import annotations

import queue

from gscope.records import dataclass

CAPTURE = "capture"
JOB = "job"
PASSTHROUGH = "passthrough"
USER = "user"


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """A process has ended; its last event.

    Attributes:
        code: its exit code; -N if signal N ended it.
    """

    code: int


@dataclass(frozen=True, slots=True)
class StopRequest:
    """The user asks by a signal to end the input."""


@dataclass(frozen=True, slots=True)
class CountersRequest:
    """The user asks by a signal how the run goes."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event from a process or thread.

    Attributes:
        source: who reports it: ``CAPTURE``, ``JOB``, ``PASSTHROUGH`` or ``USER``.
        report: what happened: a ``ProcessEvent`` or ``ProcessExit`` of a process, one of the events
            of ``cli/delivery/stream_events.py``, or a request of the user.
        pid: process id of the process that reports it; None for threads and the user.
    """

    source: str
    report: object
    pid: int | None = None


Events = queue.SimpleQueue[Event]
