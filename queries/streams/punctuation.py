"""Punctuation bookkeeping: a watermark is the minimum over streams and never falls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Message, Punctuation

Bounds = Mapping[str, int]
"""The bound promised for each temporal column; a column that is missing has no promise yet."""


def advanced(bounds: Bounds, punctuations: Iterable[Punctuation]) -> dict[str, int]:
    """``bounds`` after ``punctuations``: the greater of old and new for each column.

    A promise that was given stays given, so a smaller one that follows changes nothing.
    """
    result = dict(bounds)
    for punctuation in punctuations:
        held = result.get(punctuation.column)
        if held is None or held < punctuation.bound:
            result[punctuation.column] = punctuation.bound
    return result


def minimum(bounds: Iterable[int | None]) -> int | None:
    """The least bound of all inputs; None (no promise) as soon as one input gave none.

    No input at all gives None too: there is nothing to wait for, and nothing was promised.
    """
    least: int | None = None
    for bound in bounds:
        if bound is None:
            return None
        if least is None or bound < least:
            least = bound
    return least


class Watermark:
    """The watermark of one column over a fixed set of streams.

    ``watermark = max(watermark before, min over streams that have not ended of their bound)``

    It is None until every stream has given a bound or ended. When all have ended, ``is_ended`` holds:
    everything may be released, and ``value`` keeps the last number.

    Args:
        columns: for each stream the name its column has there.
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = dict(columns)
        self._bounds: dict[str, int | None] = dict.fromkeys(columns)
        self.value: int | None = None

    @property
    def is_ended(self) -> bool:
        """Whether every stream has ended."""
        return not self._bounds

    @property
    def waiting_for(self) -> str | None:
        """The stream that holds the watermark back, None when all have ended."""
        silent = next((name for name, bound in self._bounds.items() if bound is None), None)
        if silent is not None or not self._bounds:
            return silent
        return min(self._bounds, key=lambda name: self._bounds[name] or 0)

    def observe(self, message: Message) -> None:
        """Take note of a message; messages of other streams and batches change nothing."""
        match message:
            case Batch():
                return
            case EndOfStream(stream=stream):
                self._bounds.pop(stream, None)
            case Heartbeat(stream=stream):
                if stream not in self._bounds:
                    return
                column = self._columns[stream]
                for promise in message.punctuations:
                    held = self._bounds[stream]
                    if promise.column == column and (held is None or held < promise.bound):
                        self._bounds[stream] = promise.bound
        least = minimum(self._bounds.values())
        if least is not None and (self.value is None or least > self.value):
            self.value = least
