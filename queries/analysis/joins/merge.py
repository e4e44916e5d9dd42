"""MERGE: the union of streams with the same columns, ordered on one temporal column of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import ResolveError, TemporalError, TypeMismatchError
from gscope.queries.analysis.joins.union import check_alike, common_clock
from gscope.queries.analysis.typing.schemas import column_schema
from gscope.queries.analysis.typing.unsupported import refuse_windows
from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import VARYING, Direction, GsqlType, Ordering
from gscope.queries.plan.logical import Merge, Project, Scan
from gscope.queries.plan.row_order import ORDER
from gscope.queries.plan.whole_input import whole_input_key, whole_input_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.names.scope import Source
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Node


def build_merge(
    body: nodes.MergeQuery,
    sources: Sequence[Source],
    substitutes: Substitutes,
    *,
    is_unbounded: bool = False,
) -> Merge:
    """Return the plan of a MERGE over ``sources``, its inputs in order.

    Args:
        body: the MERGE or UNION ALL.
        sources: its inputs, open for look-up.
        substitutes: the values of ``$x`` and ``#X``.
        is_unbounded: whether the inputs never end, so that a column must order the rows of UNION
            ALL.

    Raises:
        ResolveError: a column or its input is unknown.
        TypeMismatchError: the inputs have different columns.
        TemporalError: a column to merge on does not increase.
    """
    refuse_windows(body.inputs, "MERGE")
    inputs = [_as_stream(source) for source in sources]
    if not body.columns:
        return _union(body, sources, inputs, is_unbounded=is_unbounded)
    columns = _columns_by_input(body, sources)
    positions = [
        _merge_position(source, column) for source, column in zip(sources, columns, strict=True)
    ]
    for number, (one, source) in enumerate(zip(body.inputs, sources, strict=True)):
        check_alike((sources[0].what, sources[0]), (source.what, source), one)
        if positions[number] != positions[0]:
            message = (
                f"{columns[number].parts[-1]} is column {positions[number] + 1} of {source.what}, "
                f"but {columns[0].parts[-1]} is column {positions[0] + 1} of {sources[0].what}"
            )
            remedy = "select the columns in the same order in both"
            raise TypeMismatchError(message, position=columns[number].position, remedy=remedy)
    on = tuple(
        source.node.schema.names[position]
        for source, position in zip(sources, positions, strict=True)
    )
    merged_type = sources[0].node.schema.columns[positions[0]].type
    slack = _slack(body.slack, merged_type, substitutes)
    bands = [
        source.node.schema.columns[position].ordering.band
        for source, position in zip(sources, positions, strict=True)
    ]
    band = max(slack, *bands)
    return Merge(tuple(inputs), on, slack, _schema(sources, positions[0], band))


def _union(
    body: nodes.MergeQuery, sources: Sequence[Source], inputs: Sequence[Node], *, is_unbounded: bool
) -> Merge:
    """Return the plan of UNION ALL: the MERGE on the first column that increases in all inputs.

    If there is none, and the inputs end, it is the merge on the epoch of the whole input.
    """
    labels = [f"SELECT {number}" for number in range(1, 1 + len(sources))]
    for one, source, label in zip(body.inputs, sources, labels, strict=True):
        check_alike((labels[0], sources[0]), (label, source), one)
    position = common_clock(body, sources, is_unbounded=is_unbounded)
    if position is None:
        united = tuple(map(_in_whole_input, inputs))
        epoch = whole_input_schema(ORDER)
        schema = Schema((epoch, *_schema(sources, None, 0).columns))
        return Merge(united, (ORDER,) * len(united), 0, schema)
    on = tuple(source.node.schema.names[position] for source in sources)
    band = max(source.node.schema.columns[position].ordering.band for source in sources)
    return Merge(tuple(inputs), on, 0, _schema(sources, position, band))


def _in_whole_input(node: Node) -> Project:
    """Return ``node`` with the epoch of the whole input as a hidden first column."""
    own = (
        NamedExpression(c.name, Column(c.name, c.type, c.is_nullable)) for c in node.schema.columns
    )
    columns = (whole_input_key(ORDER), *own)
    return Project(node, columns, Schema((whole_input_schema(ORDER), *node.schema.columns)))


def _as_stream(source: Source) -> Node:
    """Return the input as a stream: packets become tuples of all fields of their protocol."""
    node = source.node
    if not isinstance(node, Scan):
        return node
    columns = tuple(NamedExpression(name, source.fields[name]) for name in source.stars)
    return Project(node, columns, Schema(tuple(column_schema(c, source.ordering) for c in columns)))


def _columns_by_input(body: nodes.MergeQuery, sources: Sequence[Source]) -> list[nodes.Name]:
    """Return the column to merge on of each input, in the order of the inputs."""
    found: list[nodes.Name | None] = [None] * len(sources)
    for column in body.columns:
        owners = [
            number
            for number, source in enumerate(sources)
            if len(column.parts) > 1 and column.parts[0] in source.qualifiers[:1]
        ]
        text = ".".join(column.parts)
        if len(owners) != 1:
            known = " and ".join(source.qualifiers[0] for source in sources)
            message = f"{text} does not say which input it is from"
            remedy = f"write one column of each of {known}, with different names for the inputs"
            raise ResolveError(message, position=column.position, remedy=remedy)
        if found[owners[0]] is not None:
            message = f"{column.parts[0]} is named twice"
            remedy = "MERGE takes one column of each input"
            raise ResolveError(message, position=column.position, remedy=remedy)
        found[owners[0]] = column
    for source, named, one in zip(sources, found, body.inputs, strict=True):
        if named is None:
            message = f"MERGE names no column of {source.qualifiers[0]}"
            raise ResolveError(
                message, position=one.position, remedy="MERGE takes one column of each input"
            )
    return [column for column in found if column is not None]


def _merge_position(source: Source, column: nodes.Name) -> int:
    """Return the position of the column to merge on among the columns of its input."""
    meaning = source.resolve(column)
    schema = source.node.schema
    name = next((n for n in source.stars if source.fields[n] == meaning), None)
    if name is None or schema[name].ordering.direction is not Direction.INCREASING:
        message = f"{'.'.join(column.parts)} does not increase, so streams cannot be merged on it"
        remedy = increasing_instead(schema, name, "merge on")
        raise TemporalError(message, position=column.position, remedy=remedy)
    return schema.names.index(name)


def increasing_instead(schema: Schema, name: str | None, action: str) -> str:
    """Return the remedy for a column that does not increase: one that does, or can be made."""
    names = [c.name for c in schema.columns if c.ordering.direction is Direction.INCREASING]
    if names:
        return f"{action} {' or '.join(names)}"
    if name is not None and schema[name].ordering.direction is Direction.DECREASING:
        return f"select -{name} AS rising from each input by a query, and {action} rising there"
    return f"select time in both inputs, and {action} time"


def _slack(extent: nodes.Extent | None, on: GsqlType, substitutes: Substitutes) -> int:
    """Return SLACK in the unit of the column merged on."""
    if extent is None:
        return 0
    value = substitutes.constant(extent)
    fits = value.type is GsqlType.INT or (value.type, on) == (
        GsqlType.INTERVAL,
        GsqlType.TIMESTAMP,
    )
    if not fits or not isinstance(value.value, int) or value.value < 0:
        message = "SLACK must be a whole number of the unit of the merged column, 0 or more"
        remedy = "an INTERVAL is for TIMESTAMP columns only"
        raise TypeMismatchError(message, position=extent.position, remedy=remedy)
    return value.value


def _schema(sources: Sequence[Source], position: int | None, band: int) -> Schema:
    """Return the schema of the result: the first input's names; at most one column is temporal."""
    columns = []
    for number, alike in enumerate(
        zip(*(source.node.schema.columns for source in sources), strict=True)
    ):
        step = 1 if all(c.ordering.step == 1 for c in alike) else 0
        reaches = [c.ordering.reach for c in alike]
        reach = max(reaches) if all(reaches) else 0
        merged = Ordering(Direction.INCREASING, band, step, reach)
        ordering = merged if number == position else VARYING
        is_nullable = any(c.is_nullable for c in alike)
        columns.append(ColumnSchema(alike[0].name, alike[0].type, is_nullable, ordering))
    return Schema(tuple(columns))
