"""The events of the thread that reads streams which are answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from gscope.cli.delivery.checkpoint import StreamPosition
    from gscope.queries.streams.loss_reasons import IncompleteEpochs


@dataclass(frozen=True, slots=True)
class StreamRows:
    """Rows of streams that are answers.

    Attributes:
        rows: pairs of a query and an iterator of its tables.
        streams: the position of each stream once ``rows`` are delivered.
        is_last: whether all streams have ended.
        done: a function to call with the cursors that may be acknowledged.
        incomplete: epochs that lack packets, as other hosts have answered them.
    """

    rows: list[tuple[str, Iterator[pa.Table]]]
    streams: Mapping[str, StreamPosition]
    is_last: bool
    done: Callable[[dict[str, int]], object]
    incomplete: tuple[IncompleteEpochs, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamsFinished:
    """All streams that are answers are delivered and acknowledged."""
