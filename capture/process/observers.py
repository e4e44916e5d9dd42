"""The observers of a capture: callbacks, counters and the watchdog of its threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.interface.base import Feed
    from gscope.capture.process.statistics import CaptureStatistics
    from gscope.capture.process.thread_watchdog import ThreadWatchdog
    from gscope.capture.saving.packet_file import PacketFile
    from gscope.queries.streams.process_events import CaptureProgress, KernelCompiling


def _ignore(*_: object) -> None:
    """Do nothing: the default of a callback."""


@dataclass(frozen=True, slots=True)
class CaptureObservers:
    """The observers of one capture, each of them optional.

    Attributes:
        on_compile: called before a kernel is compiled that was not in the cache.
        on_ready: called once by a live capture that is set up, before the first row is logged.
        on_begin: called once by a live capture that begins to read packets.
        on_progress: called at every heartbeat, by the thread that sends it.
        on_failure: called by a live capture with the name of an interface that ends before the
            others, and the reason.
        statistics: counters for other processes; None if no such file is written.
        watchdog: detects capture threads that hang; None if the threads are not watched.
        packet_file: where packets of selections are saved; None if none are.
    """

    on_compile: Callable[[KernelCompiling], object] = _ignore
    on_ready: Callable[[], object] = _ignore
    on_begin: Callable[[], object] = _ignore
    on_progress: Callable[[CaptureProgress], object] = _ignore
    on_failure: Callable[[str, str], object] = _ignore
    statistics: CaptureStatistics | None = None
    watchdog: ThreadWatchdog | None = None
    packet_file: PacketFile | None = None

    def on_turn(self, feed: Feed) -> None:
        """Note the state of an interface; called repeatedly by the thread that runs it."""
        if self.watchdog is not None:
            self.watchdog.on_turn(feed.name)
        if self.statistics is not None:
            self.statistics.on_turn(feed)

    def on_end(self, feed: Feed) -> None:
        """Note that an interface has ended; called by the thread that ran it."""
        if self.statistics is not None:
            self.statistics.on_end(feed)
        if self.watchdog is not None:
            self.watchdog.on_end(feed.name)
