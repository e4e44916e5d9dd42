"""The delivery checkpoint of a live run: how far its answers have reached the sink.

The checkpoint is ``delivered.json`` in the run's folder. Each delivery writes rows to the sink
first, then the checkpoint, and only then lets the holder of the rows (the outputs of steps, the
stream log) delete them. If the supervisor is killed, the sink takes back the rows that it holds
beyond the checkpoint, where it can (see ``cli/sinks/growing_files.py``), and they are delivered
again.

The checkpoint survives the end of the process but not a loss of power; neither does the stream log
that it refers to.
"""

from __future__ import annotations

import json
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any

from gscope.errors import GscopeError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.whole_file import replace_file
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "delivered.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """How far the rows of a stream that is an answer itself were delivered.

    Attributes:
        cursor: the sequence number of the first message that is needed again: a batch with
            undelivered rows, or the next message.
        seen: the sequence number below which all messages were read.
        bound: the bound of the messages that were read, below which rows were delivered; None if
            all rows were.
        has_ended: whether the end of the stream was read.
    """

    cursor: int = 0
    seen: int = 0
    bound: int | None = None
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryPosition:
    """How far all results were delivered.

    Attributes:
        step: the last step of the HFTA job whose outputs are in the sink.
        rows: the number of rows delivered since the run began, by query.
        streams: the position in each stream that is an answer itself.
        sink: the state that the sink needs to resume, as plain JSON values.
    """

    step: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    streams: Mapping[str, StreamPosition] = field(default_factory=dict)
    sink: Mapping[str, Any] = field(default_factory=dict)


class DeliveryCheckpoint:
    """The delivery checkpoint of one run.

    Attributes:
        position: the last position recorded; the beginning, for a new run.

    Raises:
        GscopeError: the file exists but cannot be read.
    """

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / FILE
        self.position = _read(self._path)

    def record(self, position: DeliveryPosition) -> None:
        """Record ``position``.

        Raises:
            GscopeError: it cannot be written; the previous position is still recorded.
        """
        value = {"schema": SCHEMA, **asdict(position)}
        try:
            replace_file(self._path, json.dumps(value))
        except OSError as error:
            message = f"cannot write {self._path}: {os_reason(error)}"
            raise GscopeError(message) from error
        self.position = position


def _read(path: Path) -> DeliveryPosition:
    try:
        value = json.loads(path.read_bytes())
        if value.pop("schema") != SCHEMA:
            raise ValueError(path)
        streams = {name: StreamPosition(**each) for name, each in value.pop("streams").items()}
        return DeliveryPosition(**value, streams=streams)
    except FileNotFoundError:
        return DeliveryPosition()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        message = f"cannot read the delivery record {path}; the run cannot continue"
        raise GscopeError(message) from error
