"""The ring of recent packets: what groups may have, until it is known which groups are delivered.

A live capture writes the packets that its aggregating LFTAs accept into segments, pcapng files of
one interface each, in the folder of the run. Before the ring exceeds its size, the oldest segments
are deleted. ``queries/run_folder/packet_ring.py`` describes the folder.

A heartbeat passes on all packets before it. So when a row reaches the supervisor, the packets of
its group are with the writer, and the ring's state says when they are on disk.
"""

from __future__ import annotations

import os
import queue
import time
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from gscope.capture.saving.packet_file import PacketFile, SaveBuffer
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.layout import PACKET_RING_FOLDER
from gscope.queries.run_folder.packet_ring import (
    AT_END,
    NEVER,
    RingState,
    Segment,
    StateFile,
    read_state,
    ring_segments,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer

    from gscope.capture.saving.packet_file import Filled
    from gscope.capture.settings import SavedPackets

SEGMENTS = 32
"""A segment ends when it has this share of the ring."""

TICK_S = 0.25
"""Time between two records of the state of a ring without packets, in seconds."""

_BEGUN = ".new"
"""Suffix of a segment without packets, which no search reads."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True, eq=False)
class _Kept:
    """A segment in the ring.

    Attributes:
        segment: its number and interface.
        descriptor: of the open file; -1 if no more packets will be written to it.
        size: bytes of it that are whole.
        described: bytes of the headers of the ring that it has.
        latest_ns: the greatest time of its packets.
    """

    segment: Segment
    descriptor: int = -1
    size: int = 0
    described: int = 0
    latest_ns: int = NEVER


class PacketRing(PacketFile):
    """Writes marked packets of a live capture to a ring; see ``PacketFile``.

    Args:
        saved: the size of the ring, and the queries whose packets are kept.
        run_dir: the folder of the run. Segments that an earlier daemon left in it stay in the ring.

    Raises:
        OSError: the folder of the ring cannot be created.
    """

    def __init__(self, saved: SavedPackets, run_dir: Path) -> None:
        assert saved.ring_bytes is not None
        self._folder = run_dir / PACKET_RING_FOLDER
        self._ring_bytes = saved.ring_bytes
        self._segment_bytes = saved.ring_bytes // SEGMENTS
        self._described = b""
        self._kept: list[_Kept] = []
        self._open: dict[str, _Kept] = {}
        self._number = 0
        self._gone_ns = NEVER
        super().__init__(saved, run_dir, is_live=True)

    @property
    def has_room(self) -> bool:
        """Return True: what a heartbeat promises must have been handed over."""
        return True

    def take(self, wanted: int) -> SaveBuffer | None:
        """See ``PacketFile``; no buffer is larger than a segment, unless one packet is."""
        buffer = super().take(wanted)
        if buffer is None:
            return None
        return SaveBuffer(buffer.data, min(buffer.limit, max(wanted, self._segment_bytes)))

    def _run(self) -> None:
        while True:
            reached_ns = time.monotonic_ns()
            try:
                filled = self._filled.get_nowait()
            except queue.Empty:
                # What was given before that moment has been written.
                self._write_state(reached_ns)
                try:
                    filled = self._filled.get(timeout=TICK_S)
                except queue.Empty:
                    continue
            if filled is None:
                return
            self._write(filled)
            self._release(filled)

    def _write(self, filled: Filled) -> None:
        """Append blocks to the segment of their interface, all or nothing."""
        with self._changed:
            self._described += self._headers
            self._headers = b""
        if not filled.used:
            return
        kept = self._open.get(filled.origin.interface)
        if kept is not None and kept.size + filled.used > self._segment_bytes:
            self._end(kept)
            kept = None
        try:
            kept = kept or self._begin(filled.origin.interface)
            self._append(kept, filled)
        except OSError as error:
            if kept is not None:
                with suppress(OSError):
                    os.ftruncate(kept.descriptor, kept.size)
                if not kept.size:
                    self._delete(kept)
            with self._changed:
                self.counters.unwritten += filled.packets
                self.counters.failure = os_reason(error)

    def _append(self, kept: _Kept, filled: Filled) -> None:
        headers = self._described[kept.described :]
        blocks = filled.data[: filled.used]
        data = memoryview(headers + blocks.tobytes() if headers else cast("Buffer", blocks))
        size = kept.size + len(data)
        self._make_room(len(data), kept)
        position = kept.size
        while data:
            done = os.pwrite(kept.descriptor, data, position)
            position += done
            data = data[done:]
        if not kept.size:
            path = self._file_of(kept)
            path.with_name(path.name + _BEGUN).rename(path)
        kept.size = size
        kept.described = len(self._described)
        kept.latest_ns = max(kept.latest_ns, filled.origin.latest_ns)
        with self._changed:
            self.counters.packets += filled.packets
            self.counters.bytes = sum(each.size for each in self._kept)

    def _begin(self, interface: str) -> _Kept:
        segment = Segment(self._number, interface)
        descriptor = os.open(self._folder / (segment.name + _BEGUN), _NEW_FILE, 0o600)
        self._number += 1
        kept = self._open[interface] = _Kept(segment, descriptor)
        self._kept.append(kept)
        return kept

    def _end(self, kept: _Kept) -> None:
        """Write no more packets to a segment."""
        if kept.descriptor >= 0:
            os.close(kept.descriptor)
            kept.descriptor = -1
            del self._open[kept.segment.interface]

    def _delete(self, kept: _Kept) -> None:
        self._end(kept)
        self._kept.remove(kept)
        path = self._file_of(kept)
        path.unlink(missing_ok=True)
        path.with_name(path.name + _BEGUN).unlink(missing_ok=True)

    def _file_of(self, kept: _Kept) -> Path:
        return self._folder / kept.segment.name

    def _make_room(self, wanted: int, current: _Kept) -> None:
        """Delete the oldest segments until the ring has room for ``wanted`` bytes."""
        size = sum(each.size for each in self._kept)
        for oldest in list(self._kept):
            if size + wanted <= self._ring_bytes:
                return
            if oldest is not current:
                # Before the packets are gone: a search looks at the state behind them.
                self._gone_ns = max(self._gone_ns, oldest.latest_ns)
                self._write_state(self._written_ns)
                self._delete(oldest)
                size -= oldest.size

    def _write_state(self, written_ns: int) -> None:
        self._written_ns = written_ns
        with suppress(OSError):
            self._state.write(RingState(written_ns, self._gone_ns))

    def _record(self) -> None:
        """Record that no more packets will come."""
        self._write_state(AT_END)
        self._state.close()
        for kept in list(self._open.values()):
            self._end(kept)

    def _resume(self) -> None:
        """Keep the segments of an earlier daemon of the run."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        known = read_state(self._folder)
        if known is not None:
            self._gone_ns = known.gone_ns
        for path in self._folder.glob(f"*{_BEGUN}"):
            path.unlink(missing_ok=True)
        # No packet in them is later.
        now_ns = time.time_ns()
        for segment in ring_segments(self._folder):
            size = (self._folder / segment.name).stat().st_size
            self._kept.append(_Kept(segment, size=size, latest_ns=now_ns))
            self._number = segment.number + 1
        self._state = StateFile(self._folder)
        self._write_state(time.monotonic_ns())
