"""Which queries of a step have rows that SQL reads, and so need a view of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from gscope.engine.operators.base import Work


def read_by_sql(
    works: Iterable[Work], by_tasks: Container[str], carried: Container[tuple[str, int, str]]
) -> set[str]:
    """Return the queries whose rows of this step SQL reads, be it to count those that are late.

    Args:
        works: the works of the step.
        by_tasks: the queries that tasks have evaluated.
        carried: the carries that are written already: query, side and upstream query.
    """
    found: set[str] = set()
    for work in works:
        if work.node.query not in by_tasks:
            found.update(work.upstream)
        for side, taken in enumerate(work.inputs):
            found.update(taken.overdue)
            found.update(n for n in taken.carries if (work.node.query, side, n) not in carried)
    return found
