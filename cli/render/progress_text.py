"""What the progress line says: the phase of a run, how far it is, and how fast."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.streams.process_events import CaptureProgress

_SECOND_NS = 1_000_000_000
_SLOW_S = 2.0
"""Seconds after which a phase of unknown length shows how long it has taken."""


class RunPhase(Enum):
    """What a run does; the value is what the line says."""

    STARTING = "starting"
    COMPILING = "compiling"
    CAPTURING = "reading"
    RELAYING = "reading the rows of"
    AWAITING_JAVA = "waiting for Java to start"
    ANSWERING = "input read, answering"
    CLOSING = "closing windows"
    SERVING = "serving rows that are not acknowledged"


@dataclass(slots=True)
class RunView:
    """What is known of a run.

    Attributes:
        is_live: whether packets come from devices.
        phase_since_s: when the phase began, by ``time.monotonic()``.
        phase: what the run does.
        detail: which part of the phase, such as the queries that are compiled.
        progress: the last report of the capture.
        progress_at_s: when it came.
        rate: packets per second: of a live run between the last two reports, of a replay on
            average.
        began_s: when the first report came; None before.
        epochs_ns: how long the epochs are whose ends the run answers.
    """

    is_live: bool
    phase_since_s: float
    phase: RunPhase = RunPhase.STARTING
    detail: str = ""
    progress: CaptureProgress | None = None
    progress_at_s: float = 0.0
    rate: float | None = None
    began_s: float | None = None
    epochs_ns: tuple[int, ...] = ()

    def enter(self, phase: RunPhase, detail: str, now_s: float) -> None:
        """Enter a phase, or another part of it."""
        if phase is not self.phase:
            self.phase_since_s = now_s
        self.phase, self.detail = phase, detail

    def take(self, progress: CaptureProgress, now_s: float) -> None:
        """Take a report of the capture: packets are being read."""
        if self.phase in (RunPhase.STARTING, RunPhase.COMPILING):
            self.enter(RunPhase.CAPTURING, "", now_s)
        if self.began_s is None:
            self.began_s = now_s
        elif self.is_live and self.progress is not None and now_s > self.progress_at_s:
            self.rate = (progress.packets - self.progress.packets) / (now_s - self.progress_at_s)
        elif now_s > self.began_s:
            self.rate = progress.packets / (now_s - self.began_s)
        self.progress, self.progress_at_s = progress, now_s


def compiled_text(queries: tuple[str, ...], number: int) -> str:
    """Return what is compiled: queries, or () for part ``number`` of what all queries share."""
    if not queries:
        return f"gscope's packet decoders, part {number} (first use of this version)"
    if len(queries) == 1:
        return f"{queries[0]} (first use of this query)"
    named = ", ".join(queries) if len(queries) < 4 else f"{len(queries)} queries"
    return f"{named} (first use of these queries)"


def progress_text(view: RunView, now_s: float, width: int) -> str:
    """Return the line, with as many of its parts as fit into ``width``, the first before others."""
    parts = list(_parts(view, now_s))
    line = parts[0][:width]
    for part in parts[1:]:
        if len(line) + len(part) + 2 > width:
            break
        line += f", {part}"
    return line


def _parts(view: RunView, now_s: float) -> Iterator[str]:
    """Yield what the line says, most important first."""
    progress = view.progress
    if view.phase is not RunPhase.CAPTURING or progress is None:
        seconds = now_s - view.phase_since_s
        yield f"{view.phase.value} {view.detail}".rstrip()
        if seconds >= _SLOW_S:
            yield f"{seconds:.0f} s"
        return
    if view.is_live:
        yield f"capturing: {progress.packets:,} packets"
        if view.rate is not None:
            yield f"{view.rate:,.0f}/s"
        yield f"{progress.dropped:,} dropped"
        if (left := _epoch_left_s(view, progress, now_s)) is not None:
            yield f"epoch closes in {_span(left)}"
    else:
        yield from _read_parts(view, progress, now_s)
    if clock := _clock(progress.clock_ns):
        yield clock


def _read_parts(view: RunView, progress: CaptureProgress, now_s: float) -> Iterator[str]:
    """Yield how much of the captures is read, and when the rest will be."""
    done, size = progress.input_bytes, progress.size_bytes
    if not size:
        yield f"reading: {_megabytes(done)} MB"
    else:
        done = min(done, size)
        yield f"reading {_megabytes(done)} of {_megabytes(size)} MB ({done * 100 // size} %)"
    seconds = now_s - (view.began_s or now_s)
    if size and done and seconds >= _SLOW_S:
        yield f"{_span(seconds * (size - done) / done)} left"
    if view.rate is not None:
        yield f"{view.rate:,.0f} packets/s"
    yield f"{progress.packets:,} packets"


def _epoch_left_s(view: RunView, progress: CaptureProgress, now_s: float) -> float | None:
    """Return the seconds until the next epoch ends; None if no query has one."""
    clock_ns = progress.clock_ns + int((now_s - view.progress_at_s) * _SECOND_NS)
    lefts = [length - clock_ns % length for length in view.epochs_ns]
    return min(lefts) / _SECOND_NS if lefts else None


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}" if size < 10_000_000 else f"{size / 1e6:,.0f}"


def _span(seconds: float) -> str:
    """Return a duration: ``12 s``, ``3:05 min`` or ``2:10 h``."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def _clock(nanoseconds: int) -> str:
    """Return trace time to the second, UTC; "" if it is outside the calendar."""
    try:
        return f"{datetime.fromtimestamp(nanoseconds // _SECOND_NS, UTC):%Y-%m-%d %H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return ""
