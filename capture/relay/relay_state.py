"""What a relay must not forget: how far each stream of its inputs is in its own log.

A release is one batch, which gets the next number of its stream. Before the log's index lists it,
the file of the stream holds two states: the one before the release, and the one after it with the
number that the batch will have. A relay that starts compares that number with its log: if the log
has a message of that number, the second state holds, else the first. So the record of the log is
the commit, and the cursors are committed with the rows that were made of them.
"""

from __future__ import annotations

import json
from dataclasses import field
from typing import TYPE_CHECKING

from gscope.capture.log.os_errors import plain_errors
from gscope.errors import StreamError
from gscope.queries.run_folder.whole_file import replace_file
from gscope.queries.streams.event_codec import from_plain, to_plain
from gscope.queries.streams.gaps import HostGap  # noqa: TC001  # ``from_plain`` reads hints
from gscope.queries.streams.losses import NO_LOSSES, Losses
from gscope.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class PortState:
    """How far one stream of an input is released.

    Attributes:
        input: name of the input.
        log: identity of the input's log.
        stream: name of the stream in that log.
        cursor: number of the first message that is still needed.
        judged: rows below the promised bounds in messages below this number are released.
        has_ended: whether the stream has ended, or its log was replaced, and all of it is released.
        rows_total: rows received.
        late_tuples_total: rows that came after the promise of a later bound, and were discarded.
        shed_tuples_total: rows that the input shed before they were received.
    """

    input: str
    log: str
    stream: str
    cursor: int = 0
    judged: int = 0
    has_ended: bool = False
    rows_total: int = 0
    late_tuples_total: int = 0
    shed_tuples_total: int = 0


@dataclass(frozen=True, slots=True)
class MergeState:
    """How far the streams of one LFTA are released.

    Attributes:
        bounds: what is promised of the merged stream, by the name of the promise.
        ports: the streams of the inputs; those of the latest log of an input come last.
        gaps: what was released without an absent input.
        losses: what is missing from the streams of all inputs.
    """

    bounds: dict[str, int] = field(default_factory=dict)
    ports: tuple[PortState, ...] = ()
    gaps: tuple[HostGap, ...] = ()
    losses: Losses = NO_LOSSES

    def cursors(self, name: str, log: str) -> dict[str, int]:
        """Return what is still needed of a log of the input ``name``, by stream."""
        return {
            each.stream: each.cursor
            for each in self.ports
            if each.input == name and each.log == log
        }


@dataclass(frozen=True, slots=True)
class PendingState:
    """The state after a release, whose batch has the number ``sequence`` once it is published."""

    sequence: int
    state: MergeState


@dataclass(frozen=True, slots=True)
class StoredState:
    """What is in the file.

    Attributes:
        state: the state before the last release.
        pending: the state after it; None if the last release had no rows.
    """

    state: MergeState
    pending: PendingState | None = None


class StateFile:
    """The state of one merged stream in the file ``path``.

    Args:
        path: the file; its folder exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state = MergeState()

    def read(self, end: int) -> MergeState:
        """Return the state that holds if ``end`` is the number of the log's next message.

        Raises:
            StreamError: the file is unreadable or damaged.
        """
        if not self._path.exists():
            return self._state
        with plain_errors("read", self._path):
            text = self._path.read_bytes()
        try:
            stored: StoredState = from_plain(StoredState, json.loads(text))
        except (ValueError, TypeError, RecursionError) as error:
            message = f"the relay's state {self._path} is damaged: {error}"
            raise StreamError(message) from error
        pending = stored.pending
        is_published = pending is not None and end > pending.sequence
        self._state = pending.state if pending is not None and is_published else stored.state
        return self._state

    def prepare(self, state: MergeState, sequence: int) -> None:
        """Store the state that holds once the log has a message with the number ``sequence``.

        Raises:
            StreamError: the file cannot be written; it is unchanged.
        """
        self._write(StoredState(self._state, PendingState(sequence, state)))
        self._state = state

    def store(self, state: MergeState) -> None:
        """Store a state that holds already, as no rows were released.

        Raises:
            StreamError: the file cannot be written; it is unchanged.
        """
        self._write(StoredState(state))
        self._state = state

    def _write(self, stored: StoredState) -> None:
        with plain_errors("write", self._path):
            replace_file(self._path, json.dumps(to_plain(stored), separators=(",", ":")))
