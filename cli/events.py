"""Events that processes and threads send to the supervisor."""

from __future__ import annotations

import queue
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """An event from a process or thread.

    Attributes:
        source: the process (or thread) it comes from.
        name: its kind; ``exit`` when the process has ended, with ``code`` in ``fields``.
    """

    source: str
    name: str
    fields: dict[str, Any]


Events = queue.SimpleQueue[Event]
