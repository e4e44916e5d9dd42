"""The log's index: an append-only file of wire records, rewritten when most are superseded.

One index lists the messages of all streams. It is authoritative: a message exists once its record
is complete there. It is not fsynced, because it must survive the end of its process, and the kernel
keeps what was written; it need not survive a loss of power, after which a replay starts again from
its files.

Records are in the order of writing. A ``Shed`` below the end of its stream replaces the batch that
was there, a ``Merged`` several batches, a ``Thinned`` a batch by one with fewer rows. A ``Base``
says that messages missing before it have been released: all readers acknowledged them, a later
heartbeat says more, or a later batch has their rows.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import field
from typing import TYPE_CHECKING

from gscope.capture.log.os_errors import plain_errors
from gscope.errors import StreamError
from gscope.queries.streams.messages import (
    Base,
    Batch,
    EndOfStream,
    Heartbeat,
    Merged,
    Message,
    Record,
    Shed,
    Thinned,
)
from gscope.queries.streams.wire import decode_records, encode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

INDEX_NAME = "index"

_REWRITTEN_NAME = "index.new"


@dataclass(slots=True)
class IndexContents:
    """The contents of an index.

    Attributes:
        messages: in the order of writing, what was shed in the place of its batch, what was merged
            in that of the last.
        merges: each batch that others were merged into, behind these.
        thinned: what was removed from batches, whose messages have the rest.
        bases: by stream, where its messages begin and what is to be known of those before.
        size_bytes: of the whole records.
        records: how many these are.
    """

    messages: list[Message] = field(default_factory=list)
    merges: list[tuple[tuple[Batch, ...], Batch]] = field(default_factory=list)
    thinned: list[Thinned] = field(default_factory=list)
    bases: dict[str, Base] = field(default_factory=dict)
    size_bytes: int = 0
    records: int = 0


class Index:
    """The open index of a log folder, locked against other processes.

    Args:
        folder: of the log; must exist.

    Attributes:
        recovered: what was found when it was opened; a record that a crash cut off is removed.
        records: how many it has.

    Raises:
        StreamError: unusable, damaged, or in use by another process.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / INDEX_NAME
        self._rewritten = folder / _REWRITTEN_NAME
        with plain_errors("open the stream log", self._path):
            self._descriptor = _open(self._path)
        try:
            _lock(self._descriptor, self._path)
            self.recovered = read_index(folder)
            self._size = self.recovered.size_bytes
            self.records = self.recovered.records
            with plain_errors("repair the stream log", self._path):
                os.ftruncate(self._descriptor, self._size)
                self._rewritten.unlink(missing_ok=True)
        except BaseException:
            os.close(self._descriptor)
            raise

    @property
    def size_bytes(self) -> int:
        """Of the file."""
        return self._size

    def append(self, messages: Iterable[Record]) -> None:
        """Write the messages with one call: either all of them or, with an error, none.

        Raises:
            StreamError: the index cannot be written; it is unchanged.
        """
        records = [encode(message) for message in messages]
        data = b"".join(records)
        with plain_errors("write to the stream log", self._path):
            try:
                _write(self._descriptor, data)
            except OSError:
                os.ftruncate(self._descriptor, self._size)
                raise
        self._size += len(data)
        self.records += len(records)

    def rewrite(self, records: Iterable[Record]) -> None:
        """Replace the index by these records, atomically even in a crash.

        Raises:
            StreamError: the index cannot be written; it is unchanged.
        """
        encoded = [encode(record) for record in records]
        data = b"".join(encoded)
        with plain_errors("rewrite the stream log", self._rewritten):
            self._rewritten.unlink(missing_ok=True)
            descriptor = _open(self._rewritten)
            try:
                # Locked before it is renamed, so that no other process can lock it first.
                _lock(descriptor, self._path)
                _write(descriptor, data)
                self._rewritten.replace(self._path)
            except BaseException:
                os.close(descriptor)
                self._rewritten.unlink(missing_ok=True)
                raise
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._size, self.records = len(data), len(encoded)

    def close(self) -> None:
        """Unlock the folder; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _write(descriptor: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += os.write(descriptor, data[written:])


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_current = not path.exists() or os.fstat(descriptor).st_nlink
    except OSError:
        is_current = 0
    # Rewritten by another process between our opening it and our lock, the file has no name any
    # more.
    if not is_current:
        message = f"the stream log {path.parent} is in use by another process"
        raise StreamError(message)


def read_index(folder: Path) -> IndexContents:
    """Return the contents of the index in ``folder``; needs no lock.

    Raises:
        StreamError: unreadable or damaged.
    """
    path = folder / INDEX_NAME
    with plain_errors("read the stream log", path):
        data = path.read_bytes()
    try:
        records, size = decode_records(data)
        return _contents(records, size)
    except StreamError as error:
        message = f"the stream log {path} is damaged: {error}"
        raise StreamError(message) from error


def _contents(records: list[Record], size_bytes: int) -> IndexContents:
    contents = IndexContents(size_bytes=size_bytes, records=len(records))
    messages: list[Message | None] = []
    places: dict[tuple[str, int], int] = {}
    ends: dict[str, int] = {}
    ended: set[str] = set()
    for record in records:
        stream, sequence = record.stream, record.sequence
        end = ends.get(stream, 0)
        if isinstance(record, Base):
            if sequence < end:
                raise _out_of_sequence(record)
            contents.bases.setdefault(stream, record)
            ends[stream] = sequence
            if record.has_ended:
                ended.add(stream)
        elif isinstance(record, Merged):
            contents.merges.append((_merge(record, messages, places), record.batch))
        elif isinstance(record, Thinned):
            place = places.get((stream, sequence))
            if place is None or not isinstance(messages[place], Batch):
                raise _out_of_sequence(record)
            messages[place] = record.batch
            contents.thinned.append(record)
        elif isinstance(record, Shed) and sequence < end:
            place = places.get((stream, sequence))
            if place is None:
                raise _out_of_sequence(record)
            messages[place] = record
        else:
            if sequence != end or stream in ended:
                raise _out_of_sequence(record)
            places[stream, sequence] = len(messages)
            messages.append(record)
            ends[stream] = sequence + 1
            if isinstance(record, EndOfStream):
                ended.add(stream)
    contents.messages = [message for message in messages if message is not None]
    return contents


def _merge(
    record: Merged, messages: list[Message | None], places: dict[tuple[str, int], int]
) -> tuple[Batch, ...]:
    """Replace the parts of a merged batch, and the heartbeats between them, by the batch."""
    stream = record.stream
    parts: list[Batch] = []
    for sequence in record.parts:
        place = places.get((stream, sequence))
        part = None if place is None else messages[place]
        if not isinstance(part, Batch) or (parts and sequence <= parts[-1].sequence):
            raise _out_of_sequence(record)
        parts.append(part)
    if not parts or parts[-1].sequence != record.sequence:
        raise _out_of_sequence(record)
    for sequence in range(parts[0].sequence, record.sequence):
        place = places.get((stream, sequence))
        if place is not None and (
            isinstance(messages[place], Heartbeat) or sequence in record.parts
        ):
            messages[place] = None
            del places[stream, sequence]
    messages[places[stream, record.sequence]] = record.batch
    return tuple(parts)


def _out_of_sequence(record: Record) -> StreamError:
    problem = f"message {record.sequence} of stream {record.stream!r} is out of sequence"
    return StreamError(problem)
