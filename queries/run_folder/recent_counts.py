"""Counters as they were about a minute ago, so that one snapshot gives rates."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

SPAN_NS = 60_000_000_000
"""How far back the counters reach, in ns; less at the start of a process."""

PAUSE_NS = 5_000_000_000
"""The least time between two points that are kept, in ns."""

Counters = Mapping[str, "int | None"]


class RecentCounts:
    """The counters of several things as they were at the beginning of the last minute.

    They begin with the process: counters of an earlier process of the run give no rate.
    """

    def __init__(self) -> None:
        self._points: deque[tuple[int, dict[str, Counters]]] = deque()

    def since(self, now_ns: int, counters: Mapping[str, Counters]) -> dict[str, dict[str, int]]:
        """Note the present counters by name; return how much each has risen, and since when.

        A counter that is None, or was, is left out. ``since_ns`` and ``until_ns`` are the times
        between which the others have risen.
        """
        points = self._points
        if not points or now_ns - points[-1][0] >= PAUSE_NS:
            points.append((now_ns, {name: dict(each) for name, each in counters.items()}))
        while len(points) > 1 and now_ns - points[1][0] >= SPAN_NS:
            points.popleft()
        return {name: self._of(name, now_ns, each) for name, each in counters.items()}

    def _of(self, name: str, now_ns: int, counters: Counters) -> dict[str, int]:
        # The counters of something new may go back to an earlier process.
        began_ns, before = next(
            ((at_ns, found[name]) for at_ns, found in self._points if name in found),
            (now_ns, counters),
        )
        return {"since_ns": began_ns, "until_ns": now_ns, **_risen(before, counters)}


def _risen(before: Counters, now: Counters) -> dict[str, int]:
    risen = {}
    for name, count in now.items():
        earlier = before.get(name)
        if count is not None and earlier is not None:
            risen[name] = count - earlier
    return risen
