"""The file of saved packets: a thread writes what the threads of interfaces hand over.

Each hands over buffers of whole blocks. In a live capture nothing waits for the disk: if it is too
slow, packets are left out and counted. A replay waits. Whatever happens, the file consists of whole
blocks up to the last write, and a restarted daemon removes what follows them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import pyarrow as pa

from gscope import __version__
from gscope.capture.saving.counters import SavingCounters
from gscope.capture.saving.group_keys import GroupKeys
from gscope.capture.saving.pcapng_blocks import (
    Comments,
    comments,
    interface_description,
    section_header,
    whole_blocks,
)
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.layout import SAVED_PACKETS_FILE
from gscope.queries.run_folder.whole_file import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from gscope.capture.settings import SavedPackets

BUFFER_BYTES = 1 << 20
"""Bytes of blocks that are written at once, unless one packet is larger."""

LIVE_BUFFERS = 64
"""Buffers of a live capture: half a second of 1 Gbit/s while the disk is busy."""

REPLAY_BUFFERS = 4

CHECKPOINT_S = 1.0
"""Least time between two checkpoints, in seconds; a restarted daemon walks over what follows."""

_READ_BYTES = 4 << 20


class SaveBuffer(NamedTuple):
    """Room for blocks.

    Attributes:
        data: the memory.
        limit: bytes of it that may be used.
    """

    data: NDArray[np.uint8]
    limit: int


class Origin(NamedTuple):
    """Where the packets of a buffer come from.

    Attributes:
        interface: name of their interface.
        latest_ns: a time that is not less than that of any of them.
    """

    interface: str = ""
    latest_ns: int = 0


class Filled(NamedTuple):
    """A buffer to write: its blocks, their bytes, their packets and the origin of these."""

    data: NDArray[np.uint8]
    used: int
    packets: int
    origin: Origin = Origin()


class PacketFile:
    """Writes the packets of selections to an open file; for use by several threads.

    Args:
        saved: the open file, its limit, and the queries whose packets are saved.
        run_dir: the folder of the run, where a live capture records up to where the file is whole.
        is_live: whether packets are left out, rather than waited for, if the disk is slow, and
            whether the file of an earlier daemon of the run is continued.

    Attributes:
        marks: the bit that marks the packets of each LFTA, by its name.
        comments: the comments of each bit.
        counters: what became of packets.
        is_second_pass: see ``SavedPackets``.
        keys: the groups whose packets are saved, by the name of their LFTA.
    """

    def __init__(self, saved: SavedPackets, run_dir: Path, is_live: bool) -> None:
        names: dict[str, list[str]] = {}
        for each in saved.queries:
            names.setdefault(each.lfta, []).append(each.query)
        self.marks = {lfta: bit for bit, lfta in enumerate(names)}
        self.comments: Comments = comments(list(names.values()))
        self.counters = SavingCounters()
        self.is_second_pass = saved.is_second_pass
        self.keys = {
            each.lfta: GroupKeys(pa.ipc.open_file(each.keys).read_all())
            for each in saved.queries
            if each.keys
        }
        self._path = saved.path
        self._descriptor = saved.descriptor
        self._limit = saved.limit_bytes
        self._is_live = is_live
        self._checkpoint = run_dir / SAVED_PACKETS_FILE if is_live else None
        self._checkpoint_s = time.monotonic()
        self._changed = threading.Condition()
        self._free: list[NDArray[np.uint8]] = []
        self._buffers_left = LIVE_BUFFERS if is_live else REPLAY_BUFFERS
        self._savers = 0
        self._interfaces: dict[tuple[str, int], int] = {}
        self._is_full = False
        self.counters.bytes = saved.start_bytes
        self._resume()
        self._headers = section_header(f"gscope {__version__}")
        self._reserved = self.counters.bytes + len(self._headers)
        self._filled: queue.SimpleQueue[Filled | None] = queue.SimpleQueue()
        self._write(Filled(np.empty(0, np.uint8), 0, 0))
        self._writer: threading.Thread | None = threading.Thread(
            target=self._run, name="save packets", daemon=True
        )
        self._writer.start()

    def add_saver(self) -> None:
        """Provide a buffer for one more thread."""
        with self._changed:
            self._buffers_left += 1
            self._savers += 1

    def interface(self, name: str, link: int) -> int:
        """Return the number of an interface in the file, which describes it before its packets.

        Args:
            name: its name.
            link: link type of its packets, as ``interface_description`` takes it.
        """
        with self._changed:
            number = self._interfaces.get((name, link))
            if number is None:
                number = self._interfaces[name, link] = len(self._interfaces)
                described = interface_description(name, link)
                self._headers += described
                self._reserved += len(described)
            return number

    def take(self, wanted: int) -> SaveBuffer | None:
        """Return an empty buffer with room for ``wanted`` bytes; a replay waits for one.

        None if the file has reached its limit, or if the disk is slower than a live capture.
        """
        with self._changed:
            if self._limit is not None and self._reserved + wanted > self._limit:
                self._is_full = True
            if self._is_full:
                return None
            while not self._free and not self._buffers_left:
                if self._is_live:
                    return None
                self._changed.wait()
            if self._free:
                data = self._free.pop()
            else:
                self._buffers_left -= 1
                data = _buffer()
            if data.size < wanted:
                data = np.empty(wanted, np.uint8)
            limit = min(data.size, self._share(wanted))
            self._reserved += limit
        return SaveBuffer(data, limit)

    def _share(self, wanted: int) -> int:
        """Return how many bytes of the file a buffer may fill, at least ``wanted``.

        What a buffer does not fill is lost to others until it is given. So each takes a part of
        what is left, and the file is nearly full when nothing is.
        """
        if self._limit is None:
            return BUFFER_BYTES + wanted
        left = self._limit - self._reserved
        part = left if self._savers < 2 else left // (2 * self._savers)
        return min(left, max(wanted, part))

    @property
    def has_room(self) -> bool:
        """Whether most buffers are free, so that one that is not full may be written."""
        with self._changed:
            return len(self._free) + self._buffers_left > REPLAY_BUFFERS // 2

    def give(self, buffer: SaveBuffer, used: int, packets: int, origin: Origin) -> None:
        """Write the first ``used`` bytes of a buffer from ``take``, which hold ``packets``."""
        with self._changed:
            self._reserved -= buffer.limit - used
        self._filled.put(Filled(buffer.data, used, packets, origin))

    def leave_out(self, packets: int) -> None:
        """Count packets for which ``take`` had no buffer."""
        with self._changed:
            if self._is_full:
                self.counters.over_limit += packets
            else:
                self.counters.outrun += packets

    def account(self) -> dict[str, int | str]:
        """Return the name of the file and what became of packets, for the summary."""
        with self._changed:
            return {"path": self._path, **dataclasses.asdict(self.counters)}

    def close(self) -> None:
        """Write everything that was given. May be called twice."""
        if self._writer is not None:
            self._filled.put(None)
            self._writer.join()
            self._writer = None
            self._record()

    def _run(self) -> None:
        while (filled := self._filled.get()) is not None:
            self._write(filled)
            self._release(filled)
            if time.monotonic() - self._checkpoint_s >= CHECKPOINT_S:
                self._record()

    def _release(self, filled: Filled) -> None:
        with self._changed:
            self._free.append(filled.data if filled.data.size == BUFFER_BYTES else _buffer())
            self._changed.notify()

    def _write(self, filled: Filled) -> None:
        """Append headers that are due and blocks to the file, all or nothing."""
        with self._changed:
            headers = self._headers
        blocks = filled.data[: filled.used]
        data = memoryview(headers + blocks.tobytes() if headers else cast("Buffer", blocks))
        position = self.counters.bytes
        try:
            while data:
                done = os.pwrite(self._descriptor, data, position)
                position += done
                data = data[done:]
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self.counters.bytes)
            with self._changed:
                self.counters.unwritten += filled.packets
                self.counters.failure = os_reason(error)
                self._reserved -= filled.used
            return
        with self._changed:
            # More may have been added meanwhile.
            self._headers = self._headers[len(headers) :]
            self.counters.bytes = position
            self.counters.packets += filled.packets

    def _record(self) -> None:
        """Record how far the file is whole."""
        self._checkpoint_s = time.monotonic()
        if self._checkpoint is not None:
            with self._changed:
                counters = dataclasses.asdict(self.counters)
            inode = os.fstat(self._descriptor).st_ino
            with suppress(OSError):
                replace_file(self._checkpoint, json.dumps({"inode": inode, **counters}))

    def _resume(self) -> None:
        """Continue the file of an earlier daemon of the run, behind its last whole block."""
        if self._checkpoint is None:
            return
        status = os.fstat(self._descriptor)
        with suppress(OSError, ValueError, TypeError, KeyError):
            value = json.loads(self._checkpoint.read_bytes())
            if value.pop("inode") == status.st_ino:
                self.counters = SavingCounters(**value)
        counters, size = self.counters, status.st_size
        counters.bytes = min(counters.bytes, size)
        while counters.bytes < size:
            found = np.frombuffer(os.pread(self._descriptor, _READ_BYTES, counters.bytes), np.uint8)
            length, packets = whole_blocks(found, found.size)
            if not length:
                break
            counters.bytes += length
            counters.packets += packets
        if counters.bytes < size:
            os.ftruncate(self._descriptor, counters.bytes)


def _buffer() -> NDArray[np.uint8]:
    return np.empty(BUFFER_BYTES, np.uint8)
