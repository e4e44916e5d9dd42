"""Work on long tables on all cores: Arrow's kernels release the interpreter's lock."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from gscope.queries.run_folder.cores import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    import pyarrow as pa

ROWS_AT_ONCE = 65_536
"""Rows in one piece of work: few enough that they and their text stay in a core's cache."""

_I = TypeVar("_I")
_R = TypeVar("_R")


def by_pieces(work: Callable[[pa.Table], _R], table: pa.Table) -> Iterator[_R]:
    """Yield ``work`` of each piece of ``table``, in order, in parallel; nothing for no rows."""
    starts = range(0, table.num_rows, ROWS_AT_ONCE)
    return side_by_side(lambda start: work(table.slice(start, ROWS_AT_ONCE)), starts)


def by_columns(work: Callable[[str], _R], table: pa.Table, names: Sequence[str]) -> Iterator[_R]:
    """Yield ``work`` of each of the columns ``names``, in parallel if ``table`` is long."""
    if table.num_rows <= ROWS_AT_ONCE:
        return map(work, names)
    return side_by_side(work, names)


def side_by_side(work: Callable[[_I], _R], items: Sequence[_I]) -> Iterator[_R]:
    """Yield ``work`` of each item, in order, computed by one thread for each core.

    About two items a core are computed ahead. The caller's thread computes a single item.
    """
    if len(items) <= 1:
        yield from map(work, items)
        return
    cores = usable_cores()
    waiting: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(cores) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
