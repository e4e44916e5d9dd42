"""The readers of the log and what each has acknowledged."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from gscope.capture.log.os_errors import plain_errors
from gscope.errors import StreamError
from gscope.queries.run_folder.whole_file import replace_file
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

ACKNOWLEDGED_NAME = "acknowledged.json"

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Consumer:
    """A reader whose acknowledgements segments wait for.

    Attributes:
        name: name that it gives with its acknowledgements.
        streams: names of the streams that it reads; () for all.
    """

    name: str
    streams: tuple[str, ...] = ()

    def reads(self, stream: str) -> bool:
        """Return whether segments of ``stream`` wait for this reader."""
        return not self.streams or stream in self.streams


class Acknowledgements:
    """The cursors that consumers of a log have acknowledged, stored in a file of the log's folder.

    A cursor is the sequence number of the next message that is needed; those below it are not.

    Args:
        folder: folder of the log.
        consumers: readers that acknowledge; without any, every message stays needed.
        most_registered: how many further readers may register themselves; those of an earlier
            writer of the log are known.
        served: names of the streams that these read; () for all.

    Raises:
        StreamError: the stored cursors are unreadable or damaged.
    """

    def __init__(
        self,
        folder: Path,
        consumers: Iterable[Consumer],
        most_registered: int = 0,
        served: tuple[str, ...] = (),
    ) -> None:
        self._served = served
        self._path = folder / ACKNOWLEDGED_NAME
        self._consumers = {consumer.name: consumer for consumer in consumers}
        self._fixed = frozenset(self._consumers)
        self._most = len(self._consumers) + most_registered
        self._cursors = self._stored()
        if most_registered:
            for name in self._cursors:
                self._consumers.setdefault(name, Consumer(name, served))

    @property
    def has_consumers(self) -> bool:
        """Whether any reader acknowledges, or may register to do so."""
        return self._most > 0

    @property
    def cursors(self) -> dict[str, dict[str, int]]:
        """Return what each reader has acknowledged, by stream."""
        return {name: dict(self._cursors.get(name, {})) for name in self._consumers}

    def register(self, consumer: str, released: Mapping[str, int]) -> bool:
        """Add a reader; return whether it is new, so that it must be stored.

        From then on, messages wait for its acknowledgements.

        Args:
            consumer: its name.
            released: the first message that the log still has, by stream. Those below it are
                acknowledged, so that a restart does not look for them.

        Raises:
            StreamError: the name is invalid, or there are too many readers.
        """
        if consumer in self._consumers:
            return False
        if not _NAME.fullmatch(consumer):
            problem = (
                f"invalid consumer {consumer!r:.100}: expected 1 to 64 letters, digits, "
                "dots, hyphens or underscores"
            )
            raise StreamError(problem)
        if len(self._consumers) >= self._most:
            problem = (
                f"too many consumers: {sorted(self._consumers)} are registered, "
                f"and {consumer!r} would be one more than {self._most}"
            )
            raise StreamError(problem)
        self._consumers[consumer] = Consumer(consumer, self._served)
        self._cursors[consumer] = dict(released)
        return True

    def remove(self, consumer: str) -> None:
        """Undo ``register``, which could not be stored."""
        del self._consumers[consumer], self._cursors[consumer]

    def deregister(self, consumer: str) -> None:
        """Forget a reader that was registered, and store that.

        Raises:
            StreamError: the consumer is unknown, is one that the log was opened for, or the file
                cannot be written; it stays registered then.
        """
        self.ensure_known(consumer)
        if consumer in self._fixed:
            problem = f"the consumer {consumer!r} cannot be forgotten: the log was opened for it"
            raise StreamError(problem)
        before = self._cursors
        self._cursors = {name: c for name, c in before.items() if name != consumer}
        try:
            self.store(is_durable=True)
        except StreamError:
            self._cursors = before
            raise
        del self._consumers[consumer]

    @property
    def registered(self) -> dict[str, tuple[str, ...]]:
        """Return the streams that each reader reads which has registered itself; () for all."""
        return {c.name: c.streams for c in self._consumers.values() if c.name not in self._fixed}

    def advance(self, consumer: str, cursors: Mapping[str, int]) -> None:
        """Record that ``consumer`` needs no message below ``cursors``; a cursor never steps back.

        Raises:
            StreamError: the consumer is unknown.
        """
        self.ensure_known(consumer)
        before = self._cursors.get(consumer, {})
        advanced = {s: max(cursor, before.get(s, 0)) for s, cursor in cursors.items()}
        self._cursors[consumer] = {**before, **advanced}

    def ensure_known(self, consumer: str) -> None:
        """Check that ``consumer`` is a reader of this log.

        Raises:
            StreamError: it is not.
        """
        if consumer not in self._consumers:
            problem = f"unknown consumer {consumer!r}; available: {sorted(self._consumers)}"
            raise StreamError(problem)

    def store(self, *, is_durable: bool = False) -> None:
        """Write the cursors to the file from which a restart reads them.

        Args:
            is_durable: whether they are on disk, safe from a crash of the system, on return.

        Raises:
            StreamError: the file cannot be written; it is unchanged.
        """
        with plain_errors("write", self._path):
            replace_file(self._path, json.dumps(self._cursors), is_durable=is_durable)

    def done_below(self, stream: str, end: int) -> int:
        """Return the cursor below which no reader needs ``stream``; ``end`` if it has no reader.

        Without consumers it is 0: then the log keeps everything. It also keeps a stream that is
        for readers that register themselves, as long as none has.
        """
        readers = [c.name for c in self._consumers.values() if c.reads(stream)]
        if not self._consumers or (not readers and stream in self._served):
            return 0
        return min((self._cursors.get(name, {}).get(stream, 0) for name in readers), default=end)

    def _stored(self) -> dict[str, dict[str, int]]:
        try:
            with plain_errors("read", self._path):
                stored = json.loads(self._path.read_bytes()) if self._path.exists() else {}
            return {
                str(consumer): {str(stream): int(cursor) for stream, cursor in cursors.items()}
                for consumer, cursors in stored.items()
            }
        except (ValueError, TypeError, AttributeError) as error:
            message = f"the acknowledgements {self._path} of the stream log are damaged"
            raise StreamError(message) from error
