"""Long tables on all cores: Arrow's kernels hold no lock of the interpreter."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    import pyarrow as pa

ROWS_AT_ONCE = 65_536
"""Rows that one thread works on: few enough that they and their text stay in a core's cache."""

_I = TypeVar("_I")
_R = TypeVar("_R")


def by_pieces(work: Callable[[pa.Table], _R], table: pa.Table) -> Iterator[_R]:
    """What ``work`` makes of each piece of ``table``, side by side, in order; of no rows nothing."""
    starts = range(0, table.num_rows, ROWS_AT_ONCE)
    return side_by_side(lambda start: work(table.slice(start, ROWS_AT_ONCE)), starts)


def by_columns(work: Callable[[str], _R], table: pa.Table, names: Sequence[str]) -> Iterator[_R]:
    """What ``work`` makes of each of the columns ``names``, side by side if ``table`` is long."""
    if table.num_rows <= ROWS_AT_ONCE:
        return map(work, names)
    return side_by_side(work, names)


def side_by_side(work: Callable[[_I], _R], items: Sequence[_I]) -> Iterator[_R]:
    """``work`` of each item, in order, by a thread for each core.

    Only a few items are ahead of the one that is taken. A single one is done by the caller's thread.
    """
    if len(items) <= 1:
        yield from map(work, items)
        return
    cores = len(os.sched_getaffinity(0))
    waiting: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(cores) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
