"""The retained messages of one stream."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import field
from itertools import takewhile
from typing import TYPE_CHECKING

from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Message, Shed
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

UNNUMBERED = -1
"""The sequence number of a message that gets its number when it is published."""

Numbered = tuple[int, Message]
"""A message and its number in the order of the whole log."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The messages of a stream that its log retains.

    Attributes:
        base: sequence number of the first of them; those below it are released.
        end: sequence number of the next message.
        has_ended: whether the stream has ended.
    """

    base: int
    end: int
    has_ended: bool


@dataclass(slots=True)
class HeldMessages:
    """The messages of one stream from sequence number ``base`` on.

    Sequence numbers may be missing: those of heartbeats that a later one superseded, of gaps that
    were joined, and of batches merged into a later one.

    Attributes:
        base: all consumers have acknowledged the messages below this sequence number.
        end: sequence number of the next message.
        has_ended: whether the stream has ended.
        visible_below: a reader may know the messages below this sequence number; batches from it on
            have not been shown to any reader.
    """

    base: int = 0
    end: int = 0
    has_ended: bool = False
    visible_below: int = 0
    _messages: list[Numbered] = field(default_factory=list)
    _batches: deque[tuple[int, Batch]] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Numbered]:
        return iter(self._messages)

    @property
    def batches(self) -> deque[tuple[int, Batch]]:
        """Return the batches among them, oldest first; do not change it."""
        return self._batches

    def add(self, number: int, message: Message) -> None:
        """Retain the next message."""
        self._messages.append((number, message))
        self.end = message.sequence + 1
        if isinstance(message, Batch):
            self._batches.append((number, message))
        self.has_ended = self.has_ended or isinstance(message, EndOfStream)

    def since(self, cursor: int, limit: int) -> list[Numbered]:
        """Return at most ``limit`` messages from ``cursor`` on."""
        begin = self._place(cursor)
        return self._messages[begin : begin + limit]

    def mark_visible(self, cursor: int) -> None:
        """Record that a reader may know the messages below ``cursor``."""
        self.visible_below = max(self.visible_below, min(cursor, self.end))

    def invisible_batches(self) -> list[Batch]:
        """Return the unseen batches below the last heartbeat or end, oldest first."""
        ends = (m.sequence for _, m in reversed(self._messages) if not isinstance(m, Batch | Shed))
        end = next(ends, 0)
        newest = (batch for _, batch in reversed(self._batches))
        unknown = list(takewhile(lambda batch: batch.sequence >= self.visible_below, newest))
        return [batch for batch in reversed(unknown) if batch.sequence < end]

    def merge(self, batch: Batch, parts: Collection[int]) -> None:
        """Put ``batch`` in the place of ``parts`` and of the heartbeats between them."""
        first, last = self._place(min(parts)), self._place(max(parts))
        number, _ = self._messages[last]
        self._messages[first : last + 1] = [
            *(
                each
                for each in self._messages[first:last]
                if not isinstance(each[1], Heartbeat) and each[1].sequence not in parts
            ),
            (number, batch),
        ]
        later: list[tuple[int, Batch]] = []
        while self._batches and self._batches[-1][1].sequence >= min(parts):
            each = self._batches.pop()
            if each[1].sequence == batch.sequence:
                later.append((number, batch))
            elif each[1].sequence not in parts:
                later.append(each)
        self._batches.extend(reversed(later))

    def replace(self, batch: Batch, other: Batch) -> None:
        """Put ``other`` in the place of a retained batch with the same sequence number."""
        place = self._place(batch.sequence)
        number, _ = self._messages[place]
        self._messages[place] = (number, other)
        self._batches[self._batches.index((number, batch))] = (number, other)

    def is_read(self, cursor: int) -> bool:
        """Return whether ``cursor`` is beyond the end of the stream."""
        return self.has_ended and cursor == self.end

    def drop_below(self, sequence: int) -> list[Batch]:
        """Release the messages below ``sequence`` and return the batches among them."""
        if sequence <= self.base:
            return []
        del self._messages[: self._place(sequence)]
        self.base = sequence
        dropped = []
        while self._batches and self._batches[0][1].sequence < sequence:
            dropped.append(self._batches.popleft()[1])
        return dropped

    def shed(self, gap: Shed) -> None:
        """Replace the batch with the number of ``gap`` by the gap."""
        place = self._place(gap.sequence)
        number, batch = self._messages[place]
        assert isinstance(batch, Batch)
        self._messages[place] = (number, gap)
        if self._batches[0][1] is batch:
            self._batches.popleft()
        else:
            self._batches.remove((number, batch))

    def has_batch(self, sequence: int) -> bool:
        """Return whether the batch with this number is retained."""
        return self.batch(sequence) is not None

    def batch(self, sequence: int) -> Batch | None:
        """Return the batch with this number; None if it is not retained."""
        place = self._place(sequence)
        if place == len(self._messages):
            return None
        message = self._messages[place][1]
        return message if isinstance(message, Batch) and message.sequence == sequence else None

    def thin(self) -> None:
        """Release what later messages also say: all heartbeats but the last, and adjacent gaps.

        Bounds never fall, and gaps add up.
        """
        kept: list[Numbered] = []
        has_later = False
        for number, message in reversed(self._messages):
            if isinstance(message, Heartbeat):
                if has_later:
                    continue
                has_later = True
            elif isinstance(message, Shed) and kept:
                later_number, later = kept[-1]
                if isinstance(later, Shed):
                    kept[-1] = (later_number, message.with_later(later))
                    continue
            kept.append((number, message))
        self._messages = kept[::-1]

    def _place(self, sequence: int) -> int:
        """Return the position of the first message from ``sequence`` on."""
        return bisect_left(self._messages, sequence, key=lambda each: each[1].sequence)


def essential(messages: Iterable[Message]) -> list[Message]:
    """Return what must still be published later: no heartbeats, and adjacent gaps as one."""
    kept: list[Message] = []
    gaps: dict[str, int] = {}
    for message in messages:
        if isinstance(message, Heartbeat):
            continue
        if isinstance(message, Shed) and message.sequence == UNNUMBERED:
            if message.stream in gaps:
                place = gaps[message.stream]
                earlier = kept[place]
                assert isinstance(earlier, Shed)
                kept[place] = earlier.with_later(message)
                continue
            gaps[message.stream] = len(kept)
        kept.append(message)
    return kept
