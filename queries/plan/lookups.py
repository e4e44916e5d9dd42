"""Where a program looks values up: which files it needs, and what cannot be evaluated."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gscope.errors import UnsupportedError
from gscope.queries.catalog.scalar.lookups import LOOKUP_OF
from gscope.queries.expressions.expressions import Call
from gscope.queries.plan.program import RunningNode
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gscope.queries.plan.program import HftaNode, Program


def lookup_functions(part: Any) -> set[str]:
    """Return the functions that look values up in a node, or in any other part of a program."""
    return {call.function for call in _calls(part) if call.function in LOOKUP_OF}


def with_lookups(program: Program, files: Mapping[str, str]) -> Program:
    """Return ``program`` with the files that it needs.

    Raises:
        UnsupportedError: an operator would look up what Spark does not evaluate for it.
    """
    found: set[str] = set()
    for node in program.nodes:
        found |= lookup_functions(node)
        if others := lookup_functions(_beside_sql(node)):
            message = f"{node.query} calls {min(others)} in {_PLACES[type(node)]}"
            remedy = f"call it in a query that reads the answer, or that {node.query} reads"
            raise UnsupportedError(message, remedy=remedy)
    names = {LOOKUP_OF[function] for function in found}
    return replace(program, lookups=tuple((n, p) for n, p in files.items() if n in names))


_PLACES: Mapping[type[Any], str] = {
    RunningNode: "the values at the end of an epoch, with running aggregates",
    SampleNode: "a sampling operator",
    WindowNode: "the values of a window",
}


def _beside_sql(node: HftaNode) -> tuple[Any, ...]:
    """Return the parts of a node that tasks evaluate without Spark SQL, and so without tables."""
    if isinstance(node, SampleNode):
        return (node,)
    if isinstance(node, RunningNode):
        before = (node.predicate, node.keys, node.aggregates)
        parts = (getattr(node, field.name) for field in dataclasses.fields(node))
        return tuple(part for part in parts if not any(part is each for each in before))
    return ()


def _calls(part: Any) -> Iterator[Call]:
    """Yield every call in a part of a program."""
    if isinstance(part, Call):
        yield part
    if isinstance(part, tuple | frozenset):
        for each in part:
            yield from _calls(each)
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from _calls(getattr(part, field.name))
