"""Membership in tables of constants on Spark: as text for short tables, else as an Arrow function.

Spark's parser would need seconds for a text of 100,000 literals, in each step. The function carries
the table itself and tests whole columns.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.queries.catalog.scalar.tables import HEADER_BYTES, table_size, table_values
from gscope.queries.expressions.expressions import Call, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_IN_TEXT = 1000
"""The largest number of values that is written into the SQL text."""


def table_of(call: Call) -> bytes:
    """Return the table that a call of ``in_table`` searches."""
    table = call.arguments[1]
    assert isinstance(table, Literal)
    assert isinstance(table.value, bytes)
    return table.value


def is_text(call: Call) -> bool:
    """Return whether a call of ``in_table`` is short enough for the SQL text."""
    return table_size(table_of(call))[1] <= MOST_IN_TEXT


def function_name(call: Call) -> str:
    """Return the name of the Arrow function for a long table."""
    kind = call.arguments[0].type.value.lower()
    return f"gscope_in_table_{kind}_{hashlib.sha256(table_of(call)).hexdigest()[:24]}"


def choices(call: Call) -> list[Literal]:
    """Return the values of a call's table as literals."""
    kind = call.arguments[0].type
    return [Literal(value, kind) for value in table_values(table_of(call))]


def arrow_function(call: Call) -> Callable[[pa.Array], pa.Array]:
    """Return the test for a whole column; NULL gives NULL."""
    table, kind = table_of(call), call.arguments[0].type

    def contains(values: pa.Array) -> pa.Array:
        found = _in_floats(table, values) if kind is GsqlType.FLOAT else _in(table, kind, values)
        return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.bool_()))

    return contains


def _in(table: bytes, kind: GsqlType, values: pa.Array) -> pa.Array:
    return pc.is_in(values, value_set=_value_set(table, kind))


@lru_cache(maxsize=8)
def _value_set(table: bytes, kind: GsqlType) -> pa.Array:
    values: list[Any] = list(table_values(table))
    if kind is GsqlType.STRING:
        return pa.array([value.decode("iso-8859-1") for value in values], pa.string())
    if kind is GsqlType.IP:
        return pa.array([value.to_bytes(16) for value in values], pa.binary())
    return pa.array(values, pa.int64())


def _in_floats(table: bytes, values: pa.Array) -> pa.Array:
    """Search in the order of ``float_word``, in which NaN and zero have one word each."""
    words = np.frombuffer(table, "<i8")[HEADER_BYTES // 8 :]
    numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(np.int64)
    asked = bits ^ ((bits >> 63) & MAX_INT)
    places = np.minimum(np.searchsorted(words, asked), len(words) - 1)
    return pa.array(words[places] == asked)
