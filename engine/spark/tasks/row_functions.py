"""Functions that numpy has no rule for.

They are comparisons of addresses and texts, and the catalog's own functions. A function of the
catalog is called once for each different row of its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.running.vectors import VECTORIZED, arrow_type
from gscope.queries.catalog.functions import FUNCTIONS, OF_VALUES
from gscope.queries.expressions.expressions import Call, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.texts import as_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Expression

    Columns = Callable[[Expression], pa.Array]

_COMPARISONS: dict[str, Callable[..., pa.Array]] = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}
_OF_BYTES = (GsqlType.IP, GsqlType.STRING)


def is_compared(expression: Expression) -> bool:
    """Return whether ``expression`` compares addresses or texts, which compare as bytes."""
    return (
        isinstance(expression, Call)
        and expression.function in _COMPARISONS
        and all(each.type in _OF_BYTES for each in expression.arguments)
    )


def is_evaluated(expression: Expression) -> bool:
    """Return whether the catalog's function computes ``expression``, row by row."""
    return (
        isinstance(expression, Call)
        and expression.function in OF_VALUES
        and expression.function not in VECTORIZED
    )


def compared(call: Call, columns: Columns) -> pa.Array:
    """Return a comparison that ``is_compared``; NULL of NULL.

    Args:
        call: the comparison.
        columns: returns the column of an argument.
    """
    made = [
        _bytes_of(each) if isinstance(each, Literal) else as_bytes(columns(each)).cast(pa.binary())
        for each in call.arguments
    ]
    return _COMPARISONS[call.function](*made)


def evaluated(call: Call, columns: Columns, rows: int) -> pa.Array:
    """Return the values of a call that ``is_evaluated``, in the form of the log.

    Args:
        call: the call.
        columns: returns the column of an argument.
        rows: the number of rows.
    """
    entry = FUNCTIONS[call.function]
    known: dict[Any, Any] = {}

    def value(row: tuple[Any, ...]) -> Any:
        if entry.is_strict and None in row:
            return None
        # As keys of a dictionary, 0.0 and -0.0 would be equal, and True and 1.
        key = repr(row) if has_floats else row
        if key not in known:
            known[key] = entry.evaluate(*row)
        return known[key]

    has_floats = any(each.type is GsqlType.FLOAT for each in call.arguments)
    given = [
        [each.value] * rows
        if isinstance(each, Literal)
        else _python_values(columns(each), each.type)
        for each in call.arguments
    ]
    found: Sequence[Any] = list(map(value, zip(*given, strict=True) if given else [()] * rows))
    if call.type is GsqlType.STRING:
        return pa.array(found, pa.binary())
    if call.type is GsqlType.IP:
        return pa.array([None if v is None else v.to_bytes(16) for v in found], pa.binary(16))
    return pa.array(found, arrow_type(call.type))


def _python_values(column: pa.Array, kind: GsqlType) -> list[Any]:
    """Return a column as the catalog's functions take it."""
    values: list[Any] = as_bytes(column).to_pylist()
    if kind is GsqlType.IP:
        return [None if value is None else int.from_bytes(value) for value in values]
    return values


def _bytes_of(literal: Literal) -> pa.Scalar:
    value: Any = literal.value
    is_address = literal.type is GsqlType.IP and value is not None
    return pa.scalar(value.to_bytes(16) if is_address else value, pa.binary())
