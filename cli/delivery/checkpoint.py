"""How far the answers of a live run have reached their sink, on record: ``delivered.json`` in the run's folder.

The order at every delivery is: rows to the sink, the record, and only then whatever holds the rows (outputs of steps,
the stream log) may let them go. What is in the sink but not on record when the supervisor is killed is taken back
by the sink, where it can (see ``cli/sinks/growing_files.py``), and delivered once more.

The record survives the end of the process, not a loss of power: nor does the stream log that it points into.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from gscope.errors import GscopeError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.whole_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "delivered.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """How far the rows of a stream that is an answer itself were delivered.

    Attributes:
        cursor: the first message that is needed again: a batch with rows that were not delivered, or the next.
        seen: the messages below it were read.
        bound: of the messages that were read, the rows below it were delivered; None for all rows.
        has_ended: the end of the stream was read.
    """

    cursor: int = 0
    seen: int = 0
    bound: int | None = None
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryPosition:
    """How far everything was delivered.

    Attributes:
        step: the last step of the HFTA job whose outputs are in the sink.
        rows: delivered, by query, since the run began.
        streams: see ``StreamPosition``.
        sink: what the sink wants to know again, as plain JSON values.
    """

    step: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    streams: Mapping[str, StreamPosition] = field(default_factory=dict)
    sink: Mapping[str, Any] = field(default_factory=dict)


class DeliveryCheckpoint:
    """The record of one run.

    Attributes:
        position: the last one on record; that of a new run is the beginning.

    Raises:
        GscopeError: there is a record, but it is unreadable.
    """

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / FILE
        self.position = _read(self._path)

    def record(self, position: DeliveryPosition) -> None:
        """Put ``position`` on record.

        Raises:
            GscopeError: it cannot be written; the one before stands.
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
