"""By what the rows that HFTA nodes read may be divided, traced to the columns of streams.

A *divider* gives an expression over the columns of each stream that a node reads, directly or not.
Rows of different streams are in one partition if their values are equal: for a join of ``a.srcIP``
with ``b.destIP``

    {a: srcIP, b: destIP}

Sides of a join that read the same stream with crossed keys have a divider of two values whose order
does not count. Terms that change with time divide nothing: all rows of an epoch would be in one
partition.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, walk
from gscope.queries.expressions.types import HASHED_TYPES
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.partitioning.divider import (
    PLACE,
    Divider,
    filled,
    streams_of,
    template_of,
)
from gscope.queries.plan.program import AggregationNode, JoinNode, MergeNode
from gscope.queries.plan.program_partitioning import PartitionMember
from gscope.queries.plan.trees import map_expression
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import HftaNode, Lfta

Members: TypeAlias = tuple[PartitionMember, ...]


Origin: TypeAlias = "Mapping[str, Expression]"
"""The value of a column as an expression over the columns of each stream that it comes from."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where the columns of some rows come from.

    Attributes:
        streams: the streams that the rows come from.
        columns: the origins of the columns that are functions of all of them; others are absent.
    """

    streams: frozenset[str]
    columns: Mapping[str, Origin]


def stream_lineage(lfta: Lfta) -> Lineage:
    """Return the lineage of the rows of an LFTA.

    It has its columns, except those that change with time.
    """
    partials = {partial.name for partial in lfta.partials}
    return Lineage(
        frozenset({lfta.name}),
        {
            column.name: {lfta.name: bare(Column(column.name, column.type, column.is_nullable))}
            for column in lfta.stream_schema.columns
            if not column.ordering.is_temporal and column.name not in partials
        },
    )


def bare(expression: Expression) -> Expression:
    """Return an expression over one input without what is known of its NULLs."""

    def change(part: Expression) -> Expression:
        if isinstance(part, Column):
            return replace(part, is_nullable=True, input=0)
        return replace(part, is_nullable=True) if isinstance(part, Call) else part

    return map_expression(expression, change)


def lineage_of(node: HftaNode, inputs: Sequence[Lineage]) -> Lineage:
    """Return the lineage of the rows of a node, given those of its inputs."""
    streams = frozenset().union(*(each.streams for each in inputs))
    match node:
        case AggregationNode():
            keys = {key.name: origin(key.expression, inputs[0]) for key in node.keys}
            known = {name: found for name, found in keys.items() if found is not None}
            grouped = Lineage(streams, known)
            found = {c.name: origin(c.expression, grouped) for c in node.columns}
        case JoinNode():
            shown = [(pair, value) for pair, value in _equated(node, inputs) if value is not None]
            found = {c.name: _joined_origin(c.expression, node, shown) for c in node.columns}
        case MergeNode():
            found = {
                column.name: _united([each.columns.get(column.name) for each in inputs])
                for column in node.schema.columns
            }
        case _:
            found = {c.name: origin(c.expression, inputs[0]) for c in getattr(node, "columns", ())}
    return Lineage(streams, {name: value for name, value in found.items() if value is not None})


def origin(expression: Expression, lineage: Lineage) -> Origin | None:
    """Return the value of an expression over rows as one over streams; None if it is not one."""
    if not all(
        part.name in lineage.columns for part in walk(expression) if isinstance(part, Column)
    ) or not all(
        FUNCTIONS[part.function].is_pure for part in walk(expression) if isinstance(part, Call)
    ):
        return None

    def over(stream: str) -> Expression:
        def change(part: Expression) -> Expression:
            return lineage.columns[part.name][stream] if isinstance(part, Column) else part

        return bare(map_expression(expression, change))

    return {stream: over(stream) for stream in lineage.streams}


def dividers_of(node: HftaNode, inputs: Sequence[Lineage]) -> list[Divider] | None:
    """Return by what a node's rows may be divided; None if it looks at one row at a time."""
    match node:
        case AggregationNode():
            found = [origin(k.expression, inputs[0]) for k in node.keys if k.name != node.epoch]
            return _plain(found)
        case JoinNode():
            values = [value for _, value in _equated(node, inputs)]
            pairs = combinations(_sides(node, inputs), 2)
            crossed = [made for one, other in pairs if (made := _crossed(one, other)) is not None]
            return [*_plain(values), *crossed]
        case MergeNode():
            # Inputs have the names of the merge.
            names = [column.name for column in node.schema.columns]
            return _plain([_united([each.columns.get(name) for each in inputs]) for name in names])
    return None


def joined(
    candidates: Sequence[Divider],
    below: Sequence[tuple[frozenset[str], list[Divider] | None]],
) -> list[Divider]:
    """Return the dividers with which a node and the chains that it reads are compatible.

    Args:
        candidates: those of the node.
        below: for each chain the streams that it reads, and its dividers; None if it may be divided
            in any way.
    """
    wanted = list(candidates)
    for _, own in below:
        for each in own or ():
            # A function of the node's dividers is coarser, and as good.
            template = template_of(each, candidates)
            if template is not None:
                wanted.append(filled(template, candidates, streams_of(candidates)))
    found: list[Divider] = []
    for candidate in dict.fromkeys(wanted):
        values = dict(candidate.values)
        for streams, own in below:
            if own is None:
                continue
            template = template_of(candidate, own)
            if template is None:
                break
            values |= dict(filled(template, own, streams).values)
        else:
            found.append(Divider.of(values))
    kept = list(dict.fromkeys(found))
    for each in tuple(kept[::-1]):
        others = [other for other in kept if other != each]
        if others and template_of(each, others) is not None:
            kept = others
    return kept


def labels_of(lftas: Sequence[Lfta], dividers: Sequence[Divider]) -> list[Divider] | None:
    """Return what labels of the streams' rows divide by; None unless they suit ``dividers``.

    They do if they are functions of these, the same on all streams.
    """
    labels = [lfta.partitioning.members if lfta.partitioning else () for lfta in lftas]
    if len({len(members) for members in labels}) != 1 or not labels[0]:
        return None
    named = [(lfta.name, members) for lfta, members in zip(lftas, labels, strict=True)]
    found = [
        Divider.of({name: map(bare, members[place].values) for name, members in named})
        for place in range(len(labels[0]))
    ]
    return found if all(template_of(each, dividers) for each in found) else None


def over_columns(dividers: Sequence[Divider], lineage: Lineage, schema: Schema) -> Members | None:
    """Return dividers over the columns of some rows; None if these do not determine them."""
    columns = [column for column in schema.columns if column.name in lineage.columns]
    known = [
        Divider.of({stream: (value,) for stream, value in lineage.columns[c.name].items()})
        for c in columns
    ]
    found = []
    for divider in dividers:
        template = template_of(divider, known)
        if template is None:
            return None

        def named(part: Expression) -> Expression:
            is_place = isinstance(part, Column) and part.name == PLACE
            if not is_place or not isinstance(part, Column):
                return part
            return Column(columns[part.input].name, part.type, is_nullable=True)

        found.append(PartitionMember(tuple(map_expression(each, named) for each in template)))
    return tuple(found)


def _plain(values: Iterable[Origin | None]) -> list[Divider]:
    made = [
        Divider.of({stream: (value,) for stream, value in found.items()})
        for found in values
        if found is not None and found and all(map(_divides, found.values()))
    ]
    return list(dict.fromkeys(made))


def _divides(expression: Expression) -> bool:
    return expression.type in HASHED_TYPES and any(
        isinstance(part, Column) for part in walk(expression)
    )


def _sides(node: JoinNode, inputs: Sequence[Lineage]) -> list[tuple[Origin, Origin]]:
    """Return the origins of what a join equates, of both sides."""
    pairs = [
        (origin(left, inputs[0]), origin(right, inputs[1]))
        for left, right in node.keys
        if left.type is right.type
    ]
    return [(left, right) for left, right in pairs if left and right]


def _equated(
    node: JoinNode, inputs: Sequence[Lineage]
) -> list[tuple[tuple[Expression, Expression], Origin | None]]:
    """Return the equated pairs of a join, each with its value; None if a stream has two."""
    found = []
    for pair in node.keys:
        left, right = origin(pair[0], inputs[0]), origin(pair[1], inputs[1])
        value = _united([left, right]) if pair[0].type is pair[1].type else None
        found.append((pair, value))
    return found


def _united(values: Sequence[Origin | None]) -> Origin | None:
    """Return one value over the streams of all; None if it is unknown, or differs on a stream."""
    united: dict[str, Expression] = {}
    for value in values:
        if value is None:
            return None
        for stream, expression in value.items():
            if united.setdefault(stream, expression) != expression:
                return None
    return united


def _crossed(one: tuple[Origin, Origin], other: tuple[Origin, Origin]) -> Divider | None:
    """Return the divider of two equated pairs that change places; None if they do not."""
    values: dict[str, tuple[Expression, ...]] = {}
    for side in (0, 1):
        for stream, first in one[side].items():
            pair = tuple(sorted((first, other[side][stream]), key=repr))
            if first.type is not pair[-1].type or values.setdefault(stream, pair) != pair:
                return None
    if all(first == second for first, second in values.values()):
        return None
    if not all(_divides(each) for pair in values.values() for each in pair):
        return None
    return Divider.of(values)


def _joined_origin(
    expression: Expression,
    node: JoinNode,
    equal: Sequence[tuple[tuple[Expression, Expression], Origin]],
) -> Origin | None:
    """Return the origin of a column of a join: a function of what it equates and never lacks."""
    present = {
        JoinKind.INNER: (0, 1),
        JoinKind.LEFT_OUTER: (0,),
        JoinKind.RIGHT_OUTER: (1,),
        JoinKind.OUTER: (),
    }[node.kind]
    known = {pair[side]: value for pair, value in equal for side in present}
    known |= {_whichever(*pair): value for pair, value in equal}
    known |= {_whichever(*reversed(pair)): value for pair, value in equal}
    plain = {_unmarked(key): value for key, value in known.items()}

    def over(part: Expression, stream: str) -> Expression | None:
        value = plain.get(_unmarked(part))
        if value is not None:
            return value[stream]
        if isinstance(part, Literal):
            return part
        if not isinstance(part, Call) or not FUNCTIONS[part.function].is_pure:
            return None
        arguments = [over(each, stream) for each in part.arguments]
        if any(each is None for each in arguments):
            return None
        return bare(replace(part, arguments=tuple(a for a in arguments if a is not None)))

    streams = sorted({stream for value in plain.values() for stream in value})
    found = {stream: made for stream in streams if (made := over(expression, stream)) is not None}
    return found if found and len(found) == len(streams) else None


def _whichever(left: Expression, right: Expression) -> Expression:
    return Call("coalesce", (left, right), left.type, is_nullable=True)


def _unmarked(expression: Expression) -> Expression:
    """Return an expression over both sides without what is known of its NULLs."""

    def change(part: Expression) -> Expression:
        return replace(part, is_nullable=True) if isinstance(part, Column | Call) else part

    return map_expression(expression, change)
