"""Outputs of a step that threads read and sort before their turn.

The rows of a step are delivered query by query, by one thread. While it formats those of one query,
others read the next.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Self

    import pyarrow as pa

MOST_BYTES = 32 << 20
"""The most bytes of an output that is read before its turn: it is in memory as a whole."""

_READERS = 2
_AHEAD = 3
"""The most outputs in memory besides the one that is delivered."""

_K = TypeVar("_K")


class ReadAhead(Generic[_K]):
    """Reads outputs in the order in which they are delivered; a context manager.

    Args:
        sizes: the bytes of each output, by its key, in that order.
        read: yields the rows of an output; for any thread.
    """

    def __init__(self, sizes: Mapping[_K, int], read: Callable[[_K], Iterator[pa.Table]]) -> None:
        self._read = read
        self._waiting = deque(key for key, size in sizes.items() if size <= MOST_BYTES)
        self._started: dict[_K, Future[list[pa.Table]]] = {}
        self._pool = ThreadPoolExecutor(_READERS) if len(self._waiting) > 1 else None

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def tables(self, key: _K) -> Iterator[pa.Table]:
        """Yield the rows of an output, each once."""
        started = self._started.pop(key, None)
        if started is None:
            yield from self._read(key)
            return
        tables = started.result()
        self._start()
        yield from tables

    def _start(self) -> None:
        while self._pool is not None and self._waiting and len(self._started) < _AHEAD:
            key = self._waiting.popleft()
            self._started[key] = self._pool.submit(self._all, key)

    def _all(self, key: _K) -> list[pa.Table]:
        return list(self._read(key))
