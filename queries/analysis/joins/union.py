"""UNION ALL: which inputs can be united, and the column that orders their rows.

Over a finite input no column need order them: the rows are those of the whole input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TemporalError, TypeMismatchError
from gscope.queries.analysis.groups.epochs import TIME_FIELDS
from gscope.queries.analysis.typing.time_calls import usual_size
from gscope.queries.expressions.expressions import Column, PacketField, walk
from gscope.queries.expressions.types import Direction, GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.names.scope import Source
    from gscope.queries.gsql import nodes

_NEAR = 4
"""Numbers of one clock in one unit differ by less than this factor."""


def check_alike(first: tuple[str, Source], other: tuple[str, Source], node: nodes.Input) -> None:
    """Refuse two inputs, each with its name in messages, that differ in their columns.

    Raises:
        TypeMismatchError: they differ in number or types.
    """
    mine, theirs = first[1].node.schema.columns, other[1].node.schema.columns
    remedy = "select the same columns in the same order from both"
    if len(mine) != len(theirs):
        message = f"{other[0]} has {len(theirs)} columns, {first[0]} has {len(mine)}"
        raise TypeMismatchError(message, position=node.position, remedy=remedy)
    for number, (a, b) in enumerate(zip(mine, theirs, strict=True), start=1):
        if a.type is not b.type:
            message = (
                f"column {number} is {b.name} {b.type.value} in {other[0]}, "
                f"but {a.name} {a.type.value} in {first[0]}"
            )
            raise TypeMismatchError(message, position=node.position, remedy=remedy)


def common_clock(
    body: nodes.MergeQuery, sources: Sequence[Source], *, is_unbounded: bool
) -> int | None:
    """Return the position of the first column that increases in all inputs, in one unit.

    None if no column of some input increases, and the inputs end.

    Raises:
        TemporalError: there is none, and the inputs never end, or there are different ones, which
            is rather a mistake.
    """
    increasing = [
        {n for n, c in enumerate(s.node.schema.columns) if _increases(c.ordering.direction)}
        for s in sources
    ]
    common = sorted(set.intersection(*increasing))
    same = [position for position in common if _has_one_unit(sources, position)]
    if same:
        return same[0]
    if common:
        names = [source.node.schema.names[common[0]] for source in sources]
        message = f"column {common[0] + 1} counts in different units in the parts of UNION ALL"
        remedy = f"compute it in the same way in all parts: {names[0]} of SELECT 1"
    elif all(increasing):
        shown = [
            f"{source.node.schema.names[min(found)]} is column {min(found) + 1} of SELECT {number}"
            for number, (source, found) in enumerate(zip(sources, increasing, strict=True), start=1)
        ]
        message = f"the parts of UNION ALL increase along different columns: {', '.join(shown)}"
        remedy = "select the time in the same position in all parts"
    elif not is_unbounded:
        return None
    else:
        number = 1 + next(n for n, found in enumerate(increasing) if not found)
        message = (
            f"no column of SELECT {number} increases, "
            "so the rows of UNION ALL could not be put into one order"
        )
        remedy = (
            "select time, or group by time/60 AS tb and select tb, first in all parts; a run that "
            "--duration or -c bounds, and a replay, answer at the end without it"
        )
    raise TemporalError(message, position=body.position, remedy=remedy)


def _increases(direction: Direction) -> bool:
    return direction is Direction.INCREASING


def _has_one_unit(sources: Sequence[Source], position: int) -> bool:
    """Return whether a column counts alike in all inputs, as far as its origins are known."""
    kinds: list[tuple[bool, float]] = []
    for source in sources:
        column = source.node.schema.columns[position]
        fact = source.facts.get(column.name)
        leaves = [] if fact is None else list(walk(fact.origin))
        if fact is None or any(isinstance(leaf, Column) for leaf in leaves):
            continue  # of an unknown origin
        fields = [leaf for leaf in leaves if isinstance(leaf, PacketField)]
        is_clock = bool(fields) and all(field.name in TIME_FIELDS for field in fields)
        is_number = is_clock and column.type is GsqlType.INT
        kinds.append((is_clock, usual_size(fact.origin) if is_number else 1.0))
    sizes = [size for _, size in kinds]
    return len({is_clock for is_clock, _ in kinds}) <= 1 and (
        not sizes or max(sizes) < _NEAR * max(1.0, min(sizes))
    )
