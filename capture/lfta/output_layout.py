"""Output rows as code: the layout of an LFTA's columns and the stores that fill them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.columns import STORAGE, ColumnLayout, OutputLayout, Storage
from gscope.capture.lfta.state import COLUMN_WORDS, HEAP, VALIDITY, VALUES, LftaState
from gscope.capture.lfta.value_ranges import INT32, range_of
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta


def output_layout(lfta: Lfta, interface: str | None = None) -> OutputLayout:
    """Return the layout of ``lfta``'s output; ``interface`` fills its interface column, if any."""
    plain = {named.name: named.expression for named in (*lfta.keys, *lfta.columns)}
    columns = tuple(
        ColumnLayout(
            column.name,
            _storage(column.type, plain.get(column.name)),
            column.is_nullable,
            column.ordering.is_temporal and column.type not in (GsqlType.FLOAT, GsqlType.STRING),
        )
        for column in lfta.schema.columns
    )
    return OutputLayout(
        columns, interface if lfta.has_interface_column else None, has_rate=lfta.has_rate_column
    )


def _storage(type_: GsqlType, expression: Expression | None) -> Storage:
    if type_ is GsqlType.INT and expression is not None:
        values = range_of(expression)
        if INT32.low <= values.low and values.high <= INT32.high:
            return Storage.INT32
    return STORAGE[type_]


def column_word(column: int, word: int) -> str:
    """Return code for the number of the state's word that holds an address of a column."""
    return f"{LftaState.COLUMNS} + {column * COLUMN_WORDS + word}"


def store(
    column: int, layout: ColumnLayout, parts: Sequence[str], null: str | None
) -> Iterator[str]:
    """Yield statements that store a value in row ``row``; ``null`` is its NULL condition."""
    at = f"s[{column_word(column, VALUES)}] + row * {layout.storage.width}"
    match layout.storage:
        case Storage.BYTE:
            yield f"st8({at}, 1 if {parts[0]} else 0)"
        case Storage.INT32:
            yield f"st32({at}, {parts[0]})"
        case Storage.INT64:
            yield f"st64({at}, {parts[0]})"
        case Storage.FLOAT:
            yield f"stf64({at}, {parts[0]})"
        case Storage.IP:
            yield f"store_address({at}, {parts[0]}, {parts[1]})"
        case Storage.STRING:
            length = parts[1] if null is None else f"(0 if {null} else {parts[1]})"
            heap = f"s[{column_word(column, HEAP)}]"
            yield f"append_bytes({at}, {heap}, {parts[0]}, {length})"
    if layout.is_nullable:
        valid = "1" if null is None else f"0 if {null} else 1"
        yield f"st8(s[{column_word(column, VALIDITY)}] + row, {valid})"
