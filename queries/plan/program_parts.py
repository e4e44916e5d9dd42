"""What operators of a program need: those below them, and the LFTAs that these read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.plan.program import QueryInput, StreamInput, node_inputs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.queries.plan.program import HftaNode, Input, Lfta, Program


def with_inputs(program: Program, queries: Iterable[str]) -> frozenset[str]:
    """Return operators and all below them.

    Raises:
        KeyError: there is no such operator.
    """
    found: set[str] = set()
    waiting = list(queries)
    while waiting:
        query = waiting.pop()
        if query not in found:
            found.add(query)
            node = next((each for each in program.nodes if each.query == query), None)
            if node is None:
                raise KeyError(query)
            waiting += [i.query for i in node_inputs(node) if isinstance(i, QueryInput)]
    return frozenset(found)


def read_lftas(
    program: Program, nodes: Iterable[HftaNode], results: Iterable[Input]
) -> tuple[Lfta, ...]:
    """Return the LFTAs that operators and results read, in the order of the program."""
    sources = [*results, *(source for node in nodes for source in node_inputs(node))]
    names = {source.lfta for source in sources if isinstance(source, StreamInput)}
    return tuple(each for each in program.lftas if each.name in names)
