"""Expressions over numpy columns, bit for bit as ``queries/catalog/evaluate.py`` computes them.

CLOSING_WHEN is tested once an epoch, on the values at the end of that epoch: too often for one
Spark job each. The catalog itself evaluates, row by row, functions that have no entry in the tables
here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.estimates import REST_BITS
from gscope.queries.expressions.expressions import Call, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gscope.queries.expressions.expressions import Value

    Array = NDArray[Any]

_LIMIT = 2.0**63
_REST_UNITS = float(1 << REST_BITS)
"""The least FLOAT above all 64-bit integers."""

_DTYPES: dict[GsqlType, Any] = {
    GsqlType.BOOL: np.bool_,
    GsqlType.NULL: np.bool_,
    GsqlType.FLOAT: np.float64,
    GsqlType.STRING: np.object_,
    GsqlType.IP: np.object_,
}
_ARROW_TYPES: dict[GsqlType, pa.DataType] = {
    GsqlType.BOOL: pa.bool_(),
    GsqlType.NULL: pa.bool_(),
    GsqlType.FLOAT: pa.float64(),
    GsqlType.STRING: pa.string(),
    GsqlType.IP: pa.binary(),
}


def dtype_of(kind: GsqlType) -> Any:
    """Return the numpy type of a column; STRING and IP hold Python values, as in the catalog."""
    return _DTYPES.get(kind, np.int64)


def arrow_type(kind: GsqlType) -> pa.DataType:
    """Return the Arrow type in which Spark emits and accepts a column."""
    return _ARROW_TYPES.get(kind, pa.int64())


@dataclass(frozen=True, slots=True)
class Vector:
    """A column of values, and which of them are not NULL; a value under a NULL is arbitrary."""

    values: Array
    valid: Array

    def __len__(self) -> int:
        return len(self.values)

    def take(self, places: Array) -> Vector:
        """Return the rows at ``places``."""
        return Vector(self.values[places], self.valid[places])

    def is_true(self) -> Array:
        """Return where a condition holds; NULL does not hold."""
        held: Array = self.values.astype(np.bool_) & self.valid
        return held

    def to_list(self) -> list[Any]:
        """Return the Python values."""
        return [
            value if is_valid else None
            for value, is_valid in zip(self.values.tolist(), self.valid.tolist(), strict=True)
        ]


def never_null(values: Array) -> Vector:
    """Return a column without NULL."""
    return Vector(values, np.ones(len(values), np.bool_))


def from_list(values: Sequence[Value], kind: GsqlType) -> Vector:
    """Return a column of Python values."""
    valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
    dtype = dtype_of(kind)
    made = np.zeros(len(values), dtype)
    for place, value in enumerate(values):
        if value is not None:
            made[place] = value
    return Vector(made, valid)


def from_arrow(column: pa.Array | pa.ChunkedArray, kind: GsqlType) -> Vector:
    """Return a column from the form in which Spark emits it."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if kind is GsqlType.STRING:
        texts = column.to_pylist()
        return from_list([None if t is None else t.encode("iso-8859-1") for t in texts], kind)
    if kind is GsqlType.IP:
        texts = column.to_pylist()
        return from_list([None if t is None else int.from_bytes(t) for t in texts], kind)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if column.null_count:
        column = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    return Vector(column.to_numpy(zero_copy_only=False).astype(dtype_of(kind)), valid)


def to_arrow(vector: Vector, kind: GsqlType) -> pa.Array:
    """Return a column in the form in which Spark accepts it."""
    if kind is GsqlType.STRING:
        texts = [None if v is None else v.decode("iso-8859-1") for v in vector.to_list()]
        return pa.array(texts, arrow_type(kind))
    if kind is GsqlType.IP:
        texts = [None if v is None else int(v).to_bytes(16) for v in vector.to_list()]
        return pa.array(texts, arrow_type(kind))
    return pa.array(vector.values, arrow_type(kind), mask=~vector.valid)


def compute(expression: Expression, leaf: Callable[[str], Vector], rows: int) -> Vector:
    """Return ``expression`` for ``rows`` rows, where ``leaf`` returns the columns by name."""
    if isinstance(expression, Literal):
        return _repeated(expression, rows)
    if not isinstance(expression, Call):
        return leaf(expression.name)
    arguments = [compute(argument, leaf, rows) for argument in expression.arguments]
    with np.errstate(all="ignore"):
        lenient = _LENIENT.get(expression.function)
        if lenient is not None:
            return lenient(arguments)
        kinds = {argument.type for argument in expression.arguments}
        if not kinds & {GsqlType.STRING, GsqlType.IP}:
            chosen = _OF_NUMBERS.get(expression.function)
            if chosen is not None:
                return chosen(arguments)
            rule = _STRICT.get(expression.function)
            if rule is not None:
                return _strict(rule, arguments)
    return _row_by_row(expression, arguments, rows)


def _repeated(literal: Literal, rows: int) -> Vector:
    one = from_list([literal.value], literal.type)
    return Vector(np.repeat(one.values, rows), np.repeat(one.valid, rows))


def _strict(rule: Callable[..., Array | Vector], arguments: Sequence[Vector]) -> Vector:
    """Apply a rule; the result is NULL where an argument is.

    A rule returns values, or a vector if it adds NULLs of its own.
    """
    result = rule(*(argument.values for argument in arguments))
    valid = arguments[0].valid
    for argument in arguments[1:]:
        valid = valid & argument.valid
    if isinstance(result, Vector):
        return Vector(result.values, result.valid & valid)
    return Vector(result, valid)


def _row_by_row(call: Call, arguments: Sequence[Vector], rows: int) -> Vector:
    entry = FUNCTIONS[call.function]
    evaluate: Callable[..., Value] = entry.evaluate
    if entry.is_high_only:
        from gscope.engine.functions.application import read

        def evaluate(*row: Any) -> Value:
            return read(call.function, *row)[0]

    columns = [argument.to_list() for argument in arguments]
    values = [
        None if entry.is_strict and None in row else evaluate(*row)
        for row in (zip(*columns, strict=True) if columns else [()] * rows)
    ]
    return from_list(values, call.type)


def _unless_zero(rule: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Vector]:
    def divided(a: Array, b: Array) -> Vector:
        return Vector(rule(a, np.where(b == 0, np.ones_like(b), b)), b != 0)

    return divided


def _truncated(a: Array, b: Array) -> Array:
    floored = np.floor_divide(a, b)
    # numpy rounds down; the quotient of the least integer and -1 wraps, as it should
    is_broken = (np.fmod(a, b) != 0) & ((a < 0) != (b < 0))
    made: Array = floored + is_broken
    return made


def _is_equal(a: Array, b: Array) -> Array:
    held: Array = a == b
    if a.dtype == np.float64:
        held = held | (np.isnan(a) & np.isnan(b))
    return held


def _is_less(a: Array, b: Array) -> Array:
    """Return where a < b; NaN is greater than all numbers."""
    held: Array = a < b
    if a.dtype == np.float64:
        held = held | (np.isnan(b) & ~np.isnan(a))
    return held


def _rounded(a: Array) -> Array:
    """Return the nearest whole numbers, of a half the one farther from zero."""
    whole = np.trunc(a)
    away = np.where(np.abs(a - whole) >= 0.5, np.copysign(1.0, a), 0.0)
    # Zeros become positive.
    made: Array = whole + away + 0.0
    return made


def _as_integers(a: Array) -> Vector:
    whole = np.trunc(a)
    fits = np.isfinite(whole) & (whole >= -_LIMIT) & (whole < _LIMIT)
    return Vector(np.where(fits, whole, 0.0).astype(np.int64), fits)


def _is_one_of(a: Array, *choices: Array) -> Array:
    held: Array = np.logical_or.reduce([_is_equal(a, choice) for choice in choices])
    return held


def _scaled(a: Array, factor: Array) -> Array:
    return _bounded(np.floor(a * factor + 0.5))


def _scaled_whole(a: Array, factor: Array) -> Array:
    return np.where(factor == 1, a, _bounded(np.floor(a * factor)))


def _scaled_rest(a: Array, factor: Array) -> Array:
    scaled = a * factor
    rest = np.floor((scaled - np.floor(scaled)) * _REST_UNITS)
    return np.where((factor != 1) & np.isfinite(scaled), rest, 0).astype(np.int64)


def _bounded(scaled: Array) -> Array:
    """Return whole FLOATs as INT, at most an end of 64 bits; NaN gives 0."""
    # A double that 64 bits cannot hold has no defined conversion in numpy.
    made = np.where(np.abs(scaled) < _LIMIT, scaled, 0.0).astype(np.int64)
    made[scaled >= _LIMIT] = MAX_INT
    made[scaled <= -_LIMIT] = MIN_INT
    return made


def _margin(squared: Array) -> Array:
    """Return the half widths of intervals, 0 where the square is not positive."""
    return np.sqrt(np.where(squared > 0, squared, 0.0))


def _low_end(arguments: Sequence[Vector]) -> Vector:
    """Return the low ends of intervals, at least the third argument where it is not NULL."""
    value, squared, least = arguments
    low: Array = value.values.astype(np.float64) - _margin(squared.values)
    if value.values.dtype == np.int64:
        low = _bounded(np.floor(low))
    low = np.where(least.valid & (low < least.values), least.values, low)
    low = np.where(squared.values > 0, low, value.values)
    return Vector(low, value.valid & squared.valid)


_STRICT: dict[str, Callable[..., Array | Vector]] = {
    "add_int": np.add,
    "sub_int": np.subtract,
    "mul_int": np.multiply,
    "neg_int": np.negative,
    "abs_int": np.abs,
    "idiv_int": _unless_zero(_truncated),
    "floor_div": _unless_zero(np.floor_divide),
    "mod_int": _unless_zero(np.fmod),
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "bit_not": np.invert,
    "shl": lambda a, b: Vector(np.where(b > 63, 0, np.left_shift(a, b & 63)), b >= 0),
    "shr": lambda a, b: Vector(np.right_shift(a, np.clip(b, 0, 63)), b >= 0),
    "add_float": np.add,
    "sub_float": np.subtract,
    "mul_float": np.multiply,
    "neg_float": np.negative,
    "abs_float": np.abs,
    "div_float": _unless_zero(np.divide),
    "mod_float": _unless_zero(np.fmod),
    "floor_float": lambda a: np.floor(a) + 0.0,
    "ceil_float": lambda a: np.ceil(a) + 0.0,
    "round_float": _rounded,
    "float_to_int": _as_integers,
    # Of all functions outside the four operations, only this is the same to the last bit
    # everywhere.
    "sqrt": lambda a: Vector(np.sqrt(np.where(a < 0, 0.0, a)), ~(a < 0)),
    "in": _is_one_of,
    "eq": _is_equal,
    "ne": lambda a, b: ~_is_equal(a, b),
    "lt": _is_less,
    "le": lambda a, b: ~_is_less(b, a),
    "gt": lambda a, b: _is_less(b, a),
    "ge": lambda a, b: ~_is_less(a, b),
    "not": np.logical_not,
    "scaled_int": _scaled,
    "scaled_whole": _scaled_whole,
    "scaled_rest": _scaled_rest,
    "int_to_float": lambda a: a.astype(np.float64),
    "bool_to_int": lambda a: a.astype(np.int64),
    "int_to_bool": lambda a: a != 0,
    "ts_to_int": lambda a: a,
    "int_to_ts": lambda a: a,
    "ts_add": np.add,
    "ts_sub": np.subtract,
    "ts_idiv": _unless_zero(_truncated),
    "ts_diff": lambda a, b: (a - b).astype(np.float64) / 1e6,
    "non_temporal": lambda a: a,
    "sample_groups": lambda groups: groups,
    "estimate_high_int": lambda a, squared: np.where(
        squared > 0, _bounded(np.ceil(a.astype(np.float64) + _margin(squared))), a
    ),
    "estimate_high_float": lambda a, squared: np.where(squared > 0, a + _margin(squared), a),
}
"""Functions on values of fixed size whose result is NULL where an argument is."""


def _and(arguments: Sequence[Vector]) -> Vector:
    a, b = arguments
    is_false = (a.valid & ~a.values) | (b.valid & ~b.values)
    return Vector(~is_false, is_false | (a.valid & b.valid))


def _or(arguments: Sequence[Vector]) -> Vector:
    a, b = arguments
    is_true = a.is_true() | b.is_true()
    return Vector(is_true, is_true | (a.valid & b.valid))


def _case(arguments: Sequence[Vector]) -> Vector:
    made = arguments[-1]
    pairs = list(zip(arguments[:-1:2], arguments[1::2], strict=True))
    for condition, result in reversed(pairs):
        made = _chosen(condition.is_true(), result, made)
    return made


def _coalesce(arguments: Sequence[Vector]) -> Vector:
    made = arguments[-1]
    for argument in reversed(arguments[:-1]):
        made = _chosen(argument.valid, argument, made)
    return made


def _chosen(is_first: Array, first: Vector, second: Vector) -> Vector:
    return Vector(
        np.where(is_first, first.values, second.values),
        np.where(is_first, first.valid, second.valid),
    )


def _extreme(
    is_better: Callable[[Array, Array], Array],
) -> Callable[[Sequence[Vector]], Vector]:
    """Return the choice of the best value that is not NULL; of equal ones it is the first."""

    def extreme(arguments: Sequence[Vector]) -> Vector:
        made = arguments[0]
        for other in arguments[1:]:
            is_chosen = other.valid & (~made.valid | is_better(other.values, made.values))
            made = _chosen(is_chosen, other, made)
        return made

    return extreme


_OF_NUMBERS: dict[str, Callable[[Sequence[Vector]], Vector]] = {
    "min_of": _extreme(_is_less),
    "max_of": _extreme(lambda a, b: _is_less(b, a)),
    "is_true": lambda arguments: never_null(arguments[0].is_true()),
}
"""Functions of numbers and truth values that treat NULL themselves."""

_LENIENT: dict[str, Callable[[Sequence[Vector]], Vector]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": _coalesce,
    "is_null": lambda arguments: never_null(~arguments[0].valid),
    "estimate_low_int": _low_end,
    "estimate_low_float": _low_end,
}
"""Functions that treat NULL themselves."""

VECTORIZED = frozenset((*_STRICT, *_LENIENT, *_OF_NUMBERS))
"""Functions that ``compute`` applies to whole columns, at least of numbers."""
