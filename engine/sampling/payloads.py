"""Functions that read payloads.

Their results are columns, computed and counted once for each tuple.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.engine.functions.application import read
from gscope.engine.running.vectors import from_list
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import Call, Column, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.functions.base import Outcome
    from gscope.engine.running.vectors import Vector
    from gscope.queries.expressions.expressions import Expression, Value
    from gscope.queries.plan.sampling_operator import SampleNode

Reads = dict["Expression", Column]
"""The calls that read payloads, each with the column of its result."""


def reads_of(node: SampleNode) -> Reads:
    """Return the calls that read payloads in the expressions over the input of ``node``."""
    expressions = [each.expression for each in (*node.keys, *node.sampling.values)]
    if node.predicate is not None:
        expressions.append(node.predicate)
    reads: Reads = {}
    for part in (part for each in expressions for part in walk(each)):
        if isinstance(part, Call) and FUNCTIONS[part.function].is_high_only:
            reads.setdefault(part, Column(f"$read{len(reads)}", part.type, is_nullable=True))
    return reads


def with_columns(expression: Expression, reads: Mapping[Expression, Column]) -> Expression:
    """Return an expression that reads the columns of ``reads`` instead of payloads."""
    if expression in reads:
        return reads[expression]
    if not reads or not isinstance(expression, Call):
        return expression
    arguments = tuple(with_columns(each, reads) for each in expression.arguments)
    return replace(expression, arguments=arguments)


def read_column(call: Call, payloads: Vector) -> tuple[Vector, Counter[Outcome]]:
    """Return the results of a call for a column of payloads, and what came of reading these.

    Equal payloads are read once. NULL gives NULL.
    """
    known: dict[bytes, tuple[Value, Outcome]] = {}
    outcomes: Counter[Outcome] = Counter()
    values: list[Value] = []
    for payload in payloads.to_list():
        if payload is None:
            values.append(None)
            continue
        found = known.get(payload)
        if found is None:
            found = known[payload] = read(call.function, payload)
        values.append(found[0])
        outcomes[found[1]] += 1
    return from_list(values, call.type), outcomes
