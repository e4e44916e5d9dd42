"""The spool: rows on disk until every outlet has sent them.

Rows are appended in blocks to segment files. A block is a header line, a JSON object with the
result, the sequence number of the first row, the row's number within its result, and the size,
followed by one line of NDJSON for each row. Sequence numbers count all rows of the run from 0.

Rows can be read once they are published, which is after the delivery checkpoint refers to them: a
row that was sent never gets another number when the run is killed and resumed.
"""

from __future__ import annotations

import json
import os
import threading
from bisect import bisect_right
from dataclasses import field
from typing import TYPE_CHECKING, Any, BinaryIO

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SUFFIX = ".rows"
_SEGMENTS = 16
_LARGEST_SEGMENT = 8 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one result that follow one another.

    Attributes:
        query: the result.
        first: the sequence number of the first row.
        number: the number of the first row within the result, from 1.
        lines: one JSON object for each row.
    """

    query: str
    first: int
    number: int
    lines: tuple[bytes, ...]

    @property
    def end(self) -> int:
        """Return the sequence number behind the last row."""
        return self.first + len(self.lines)


@dataclass(slots=True)
class _Segment:
    path: Path
    first: int
    size: int = 0


@dataclass(slots=True)
class Cursor:
    """How far one outlet has read.

    Attributes:
        next: the sequence number of the next row to read.
        acknowledged: the sequence number below which no row is needed any more.
        dropped: the number of rows that were deleted before they were read.
        segment: the first sequence number of the open segment; -1 before one is open.
        file: the open segment, at the beginning of a block.
        rest: what is left of the block that was read last.
    """

    next: int = 0
    acknowledged: int = 0
    dropped: int = 0
    segment: int = -1
    file: BinaryIO | None = None
    rest: Block | None = None


@dataclass(slots=True)
class Spool:
    """Rows on disk, for one writer and several readers in threads of their own.

    Args:
        folder: the folder of segments, created if it is missing.
        budget: the size in bytes that segments together do not exceed.
        before: the last ``state`` on record; {} for a new spool, which deletes what is there.

    Attributes:
        changed: notified when rows are published or acknowledged; guards all attributes.
        end: the sequence number of the next row.
        numbers: the number of rows so far, by result.
        published: the sequence number below which rows can be read.

    Raises:
        OSError: the folder is not writable.
    """

    folder: Path
    budget: int
    before: Mapping[str, Any] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)
    end: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    published: int = 0
    _segments: list[_Segment] = field(default_factory=list)
    _cursors: list[Cursor] = field(default_factory=list)
    _file: BinaryIO | None = None

    def __post_init__(self) -> None:
        """Restore what is on record, and delete the rest."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = {int(path.stem): path for path in self.folder.glob(f"*{_SUFFIX}")}
        last = self.before.get("last", -1)
        for first in sorted(found):
            if first > last:
                found[first].unlink()
                continue
            size = found[first].stat().st_size
            if first == last and size > self.before["size"]:
                os.truncate(found[first], self.before["size"])
                size = self.before["size"]
            self._segments.append(_Segment(found[first], first, size))
        self.end = self.published = self.before.get("end", 0)
        self.numbers = dict(self.before.get("numbers", {}))

    @property
    def size(self) -> int:
        """Return the bytes of all segments."""
        return sum(segment.size for segment in self._segments)

    @property
    def first(self) -> int:
        """Return the sequence number of the first row that is kept."""
        return self._segments[0].first if self._segments else self.end

    def is_full(self, more: int) -> bool:
        """Return whether ``more`` bytes would exceed the budget."""
        return self.size + more > self.budget

    def add_reader(self, acknowledged: int, dropped: int = 0) -> Cursor:
        """Return the position of a reader that has acknowledged rows below that number."""
        cursor = Cursor(acknowledged, acknowledged, dropped)
        with self.changed:
            self._cursors.append(cursor)
            self._skip_deleted(cursor)
        return cursor

    def append(self, query: str, lines: bytes, rows: int) -> None:
        """Append rows; delete the oldest segments, which are then dropped, if the budget is full.

        Args:
            query: the result.
            lines: one line of NDJSON for each row.
            rows: how many.

        Raises:
            OSError: they cannot be written.
        """
        number = self.numbers.get(query, 0) + 1
        with self.changed:
            header = {"query": query, "first": self.end, "number": number, "rows": rows}
            block = json.dumps(header | {"bytes": len(lines)}).encode() + b"\n" + lines
            while self._segments[:-1] and self.is_full(len(block)):
                self._delete_first()
            segment = self._open_segment()
            assert self._file is not None
            self._file.write(block)
            segment.size += len(block)
            self.end += rows
            self.numbers[query] = number + rows - 1

    def state(self) -> dict[str, Any]:
        """Return what ``before`` takes, once all rows are in their files."""
        if self._file is not None:
            self._file.flush()
        last = self._segments[-1] if self._segments else None
        return {
            "end": self.end,
            "numbers": dict(self.numbers),
            "last": last.first if last else -1,
            "size": last.size if last else 0,
        }

    def publish(self) -> None:
        """Let readers have all rows that the last ``state`` includes."""
        with self.changed:
            if self.published != self.end:
                self.published = self.end
                self.changed.notify_all()

    def read(self, cursor: Cursor, most_rows: int, most_bytes: int) -> Block | None:
        """Return the next published rows of one result; None if there are none.

        A row of more than ``most_bytes`` is returned alone.
        """
        with self.changed:
            block = cursor.rest or self._next_block(cursor)
            if block is None:
                return None
            count, size = 0, 0
            for line in block.lines[:most_rows]:
                size += len(line)
                if count and size > most_bytes:
                    break
                count += 1
            taken, left = block.lines[:count], block.lines[count:]
            cursor.rest = (
                Block(block.query, block.first + count, block.number + count, left)
                if left
                else None
            )
            cursor.next = block.first + count
            return Block(block.query, block.first, block.number, taken)

    def acknowledge(self, cursor: Cursor, end: int) -> None:
        """Note that a reader needs no row below ``end``, and delete what no reader needs."""
        with self.changed:
            cursor.acknowledged = max(cursor.acknowledged, end)
            needed = min(each.acknowledged for each in self._cursors)
            while self._segments[1:] and self._segments[1].first <= needed:
                self._delete_first()
            self.changed.notify_all()

    def close(self) -> None:
        """Close all files."""
        with self.changed:
            for file in (self._file, *(cursor.file for cursor in self._cursors)):
                if file is not None:
                    file.close()
            self._file = None

    def _open_segment(self) -> _Segment:
        """Return the segment to append to."""
        largest = min(self.budget // _SEGMENTS, _LARGEST_SEGMENT)
        if self._file is not None and self._segments[-1].size < largest:
            return self._segments[-1]
        if self._file is not None:
            self._file.close()
        if self._file is None and self._segments and self._segments[-1].size < largest:
            self._file = self._segments[-1].path.open("ab")
            return self._segments[-1]
        path = self.folder / f"{self.end:020}{_SUFFIX}"
        self._file = path.open("xb")
        self._segments.append(_Segment(path, self.end))
        return self._segments[-1]

    def _delete_first(self) -> None:
        segment = self._segments.pop(0)
        segment.path.unlink(missing_ok=True)
        for cursor in self._cursors:
            self._skip_deleted(cursor)

    def _skip_deleted(self, cursor: Cursor) -> None:
        """Move a reader behind deleted rows; those that it has not read are dropped.

        Rows that it has read it may still send.
        """
        if cursor.next < self.first:
            cursor.dropped += self.first - cursor.next
            cursor.next = self.first
            cursor.rest = None

    def _next_block(self, cursor: Cursor) -> Block | None:
        """Return the block with the row ``cursor.next``, from that row on."""
        while cursor.next < self.published:
            block = self._read_block(cursor)
            if block is not None and block.end > cursor.next:
                skipped = max(0, cursor.next - block.first)
                return Block(
                    block.query,
                    block.first + skipped,
                    block.number + skipped,
                    block.lines[skipped:],
                )
        return None

    def _read_block(self, cursor: Cursor) -> Block | None:
        """Return the block at the reader's place in its file, and move on; None at its end."""
        at = bisect_right([segment.first for segment in self._segments], cursor.next) - 1
        segment = self._segments[at]
        if cursor.segment != segment.first or cursor.file is None:
            if cursor.file is not None:
                cursor.file.close()
            cursor.file = segment.path.open("rb")
            cursor.segment = segment.first
        if self._file is not None:
            self._file.flush()
        head = json.loads(cursor.file.readline())
        if head["first"] + head["rows"] <= cursor.next:
            cursor.file.seek(head["bytes"], os.SEEK_CUR)
            return None
        lines = cursor.file.read(head["bytes"])[:-1].split(b"\n")
        return Block(head["query"], head["first"], head["number"], tuple(lines))
