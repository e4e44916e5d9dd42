"""The messages of one stream that the log still holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from gscope.queries.streams.messages import Batch, EndOfStream, Message


@dataclass(slots=True)
class HeldMessages:
    """The messages of one stream from sequence number ``base`` on, each with its number in the whole log."""

    base: int = 0
    messages: list[tuple[int, Message]] = field(default_factory=list)
    is_ended: bool = False

    @property
    def end(self) -> int:
        """The sequence number that the next message gets."""
        return self.base + len(self.messages)

    @property
    def batches(self) -> list[Batch]:
        """The batches among them."""
        return [message for _, message in self.messages if isinstance(message, Batch)]

    def add(self, number: int, message: Message) -> None:
        """Hold the next message."""
        self.messages.append((number, message))
        self.is_ended = isinstance(message, EndOfStream)

    def since(self, cursor: int, limit: int) -> list[tuple[int, Message]]:
        """At most ``limit`` messages from ``cursor`` on, which must not be below ``base``."""
        begin = cursor - self.base
        return self.messages[begin : begin + limit]

    def is_read(self, cursor: int) -> bool:
        """Whether ``cursor`` is behind the end of the stream."""
        return self.is_ended and cursor == self.end

    def drop_below(self, sequence: int) -> list[Batch]:
        """Hold messages below ``sequence`` no more; the batches that were among them."""
        count = max(0, sequence - self.base)
        dropped = [m for _, m in self.messages[:count] if isinstance(m, Batch)]
        del self.messages[:count]
        self.base += count
        return dropped
