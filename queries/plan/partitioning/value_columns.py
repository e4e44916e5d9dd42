"""The values of expressions over the columns of a table, to hash them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.expressions import Call, Column, Literal, walk
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.address_bits import address_bits
from gscope.queries.plan.partitioning.partition_hash import (
    ValueColumn,
    ensure_hashed,
    partition_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gscope.queries.expressions.expressions import Expression, PacketField, Value
    from gscope.queries.plan.partitioning.address_bits import AddressBits
    from gscope.queries.plan.program_partitioning import PartitionMember

    Words = NDArray[np.uint64]

_LOW_32 = (1 << 32) - 1
_ALL = (1 << 64) - 1


def partitions_of_rows(
    table: pa.Table, members: Sequence[PartitionMember], partitions: int
) -> NDArray[np.int32]:
    """Return the partition of each row of a table, over whose columns the members are."""
    columns = [[value_column(value, table) for value in member.values] for member in members]
    return partition_of(columns, partitions)


def value_column(expression: Expression, table: pa.Table) -> ValueColumn:
    """Return the values of an expression of a fixed-size type over the columns of ``table``.

    Functions that partitioning sets usually have are computed for whole columns, any other one once
    for each distinct row of the columns that it reads.

    Raises:
        ValueError: the type is FLOAT or STRING.
    """
    ensure_hashed(expression.type)
    match expression:
        case Column(name):
            return ValueColumn.from_arrow(table[name], expression.type)
        case Call(function, (Column() as column, *rest)) if all(
            isinstance(each, Literal) and isinstance(each.value, int) for each in rest
        ):
            numbers = tuple(int(each.value or 0) for each in rest if isinstance(each, Literal))
            made = _by_rule(function, numbers, column, table)
            if made is not None:
                return made
    return _by_value(expression, table)


def _by_rule(
    function: str, numbers: tuple[int, ...], column: Column, table: pa.Table
) -> ValueColumn | None:
    """Return a function of a column and constants; None if no rule here applies."""
    bits = address_bits(function, numbers)
    if bits is None and function not in _RULES:
        return None
    values = value_column(column, table)
    words = _kept(values.words, bits) if bits else _RULES[function](values.words, *numbers)
    return None if words is None else ValueColumn(words, values.valid)


def _kept(words: tuple[Words, ...], bits: AddressBits) -> tuple[Words, ...]:
    """Return addresses with some of their bits; of IPv4 the high bits say that it is one."""
    high, low = (half.byteswap() for half in words)
    is_ipv4 = (high == np.uint64(0)) & (low >> np.uint64(32) == np.uint64(0xFFFF))
    low4 = np.uint64(_ALL ^ _LOW_32 | bits.of_ipv4)
    low = low & np.where(is_ipv4, low4, np.uint64(bits.of_ipv6 & _ALL))
    high = high & np.where(is_ipv4, np.uint64(_ALL), np.uint64(bits.of_ipv6 >> 64))
    return high.byteswap(), low.byteswap()


def _and(words: tuple[Words, ...], bits: int) -> tuple[Words, ...]:
    return (words[0] & np.uint64(bits & _ALL),)


def _quotient(words: tuple[Words, ...], divisor: int) -> tuple[Words, ...] | None:
    """Return quotients of natural numbers; those of others are not rounded down."""
    numbers = words[0].view(np.int64)
    if divisor < 1 or (len(numbers) and numbers.min() < 0):
        return None
    return ((numbers // np.int64(divisor)).view(np.uint64),)


def _remainder(words: tuple[Words, ...], divisor: int) -> tuple[Words, ...] | None:
    if divisor < 1:
        return None
    return (np.fmod(words[0].view(np.int64), np.int64(divisor)).view(np.uint64),)


_RULES: dict[str, Callable[..., tuple[Words, ...] | None]] = {
    "bit_and": _and,
    "idiv_int": _quotient,
    "mod_int": _remainder,
}
"""Functions of a column and constants, as words; None where the rule does not apply."""


def _by_value(expression: Expression, table: pa.Table) -> ValueColumn:
    columns = {part.name: part.type for part in walk(expression) if isinstance(part, Column)}
    coded = [
        table[name].combine_chunks().dictionary_encode(null_encoding="encode") for name in columns
    ]
    rows = np.stack([each.indices.to_numpy() for each in coded])
    distinct, places = np.unique(rows, axis=1, return_inverse=True)
    known = [
        dict(zip(columns, values, strict=True))
        for values in zip(
            *(
                _python_values(each.dictionary.take(pa.array(numbers)), kind)
                for each, numbers, kind in zip(coded, distinct, columns.values(), strict=True)
            ),
            strict=True,
        )
    ]
    values = [_evaluated(expression, row) for row in known]
    stored = [_stored(value, expression.type) for value in values]
    return ValueColumn.from_arrow(
        pa.array(stored, _ARROW_TYPES.get(expression.type, pa.int64())).take(
            pa.array(places.reshape(-1))
        ),
        expression.type,
    )


_ARROW_TYPES = {
    GsqlType.BOOL: pa.bool_(),
    GsqlType.NULL: pa.null(),
    GsqlType.IP: pa.binary(16),
}


def _python_values(column: pa.Array, kind: GsqlType) -> list[Value]:
    values: list[Any] = column.to_pylist()
    if kind is GsqlType.IP:
        return [None if value is None else int.from_bytes(value) for value in values]
    return values


def _evaluated(expression: Expression, row: dict[str, Value]) -> Value:
    def leaf(column: PacketField | Column) -> Value:
        return row[column.name]

    return evaluate(expression, leaf)


def _stored(value: Value, kind: GsqlType) -> Any:
    return value.to_bytes(16) if kind is GsqlType.IP and isinstance(value, int) else value
