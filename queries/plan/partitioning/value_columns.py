"""The values of expressions over the columns of a table, to hash them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.expressions import Call, Column, Literal, walk
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.partition_hash import (
    ValueColumn,
    ensure_hashed,
    partition_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gscope.queries.expressions.expressions import Expression, PacketField, Value
    from gscope.queries.plan.program_partitioning import PartitionMember

    Words = NDArray[np.uint64]

_V4_HIGH = np.uint64(0)
_V4 = np.uint64(0xFFFF)
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
        case Call(function, (Column() as column, *rest)) if function in _RULES and all(
            isinstance(each, Literal) and isinstance(each.value, int) for each in rest
        ):
            numbers = [each.value for each in rest if isinstance(each, Literal)]
            values = value_column(column, table)
            made = _RULES[function](values.words, *numbers)
            if made is not None:
                return ValueColumn(made, values.valid)
    return _by_value(expression, table)


def _masked(words: tuple[Words, ...], mask: int) -> tuple[Words, ...] | None:
    if 0 <= mask <= _LOW_32:
        return _kept(words, _LOW_32 ^ _ALL | mask, _ALL, _LOW_32 ^ _ALL | mask)
    # Such a mask may make another family of an address.
    return None


def _prefix(words: tuple[Words, ...], bits4: int, bits6: int) -> tuple[Words, ...] | None:
    if not (0 <= bits4 <= 32 and 0 <= bits6 <= 128):
        return None
    first6 = (1 << 128) - (1 << (128 - bits6))
    return _kept(words, _ALL - _LOW_32 + (_LOW_32 >> bits4 ^ _LOW_32), first6 >> 64, first6 & _ALL)


def _kept(words: tuple[Words, ...], low4: int, high6: int, low6: int) -> tuple[Words, ...]:
    """Return addresses with some of their bits, by family; of IPv4 all of the high half counts."""
    high, low = (half.byteswap() for half in words)
    is_ipv4 = (high == _V4_HIGH) & (low >> np.uint64(32) == _V4)
    low = low & np.where(is_ipv4, np.uint64(low4), np.uint64(low6))
    high = high & np.where(is_ipv4, np.uint64(_ALL), np.uint64(high6))
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
    "ip_mask": _masked,
    "prefix": _prefix,
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
