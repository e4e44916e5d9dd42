"""Typed expressions as Spark SQL text.

One SQL text for each step costs one call into the JVM, and ``explain`` can show it; building Column
objects would cost a call for each node. STRING columns are Spark strings in which one character is
one byte (ISO-8859-1), so lengths, offsets, order and patterns are those of the bytes.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from gscope.engine.spark.sql import constant_tables
from gscope.queries.catalog.scalar.estimates import REST_BITS
from gscope.queries.catalog.scalar.hashes import HASH_OF
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MIN_INT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gscope.queries.expressions.expressions import NamedExpression

    Leaf = Callable[[Column | PacketField], str]

SPARK_TYPES: dict[GsqlType, str] = {
    GsqlType.BOOL: "BOOLEAN",
    GsqlType.INT: "BIGINT",
    GsqlType.FLOAT: "DOUBLE",
    GsqlType.STRING: "STRING",
    GsqlType.IP: "BINARY",
    GsqlType.MAC: "BIGINT",
    GsqlType.TIMESTAMP: "BIGINT",
    GsqlType.INTERVAL: "BIGINT",
    GsqlType.NULL: "BOOLEAN",
}

_V4_PREFIX = "X'00000000000000000000FFFF'"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_SCALED = "(cast({0} AS DOUBLE) * {1})"
_REST_UNITS = f"{float(1 << REST_BITS)}D"
_NO_MARGIN = "nanvl({1}, 0.0D) <= 0.0D"
_BELOW = "(cast({0} AS DOUBLE) - sqrt({1}))"

_TEMPLATES: dict[str, str] = {
    "add_int": "({0} + {1})",
    "sub_int": "({0} - {1})",
    "mul_int": "({0} * {1})",
    "neg_int": "negative({0})",
    "abs_int": "abs({0})",
    "idiv_int": "({0} div {1})",
    "floor_div": (
        "(({0} div {1}) - if(({0} % {1}) <> 0L AND ({0} % {1} < 0L) <> ({1} < 0L), 1L, 0L))"
    ),
    "mod_int": "({0} % {1})",
    "bit_and": "({0} & {1})",
    "bit_or": "({0} | {1})",
    "bit_xor": "({0} ^ {1})",
    "bit_not": "(~{0})",
    "add_float": "({0} + {1})",
    "sub_float": "({0} - {1})",
    "mul_float": "({0} * {1})",
    "neg_float": "negative({0})",
    "abs_float": "abs({0})",
    "div_float": "({0} / {1})",
    "mod_float": "({0} % {1})",
    "eq": "({0} = {1})",
    "ne": "({0} <> {1})",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
    "and": "({0} AND {1})",
    "or": "({0} OR {1})",
    "not": "(NOT {0})",
    "is_null": "({0} IS NULL)",
    "is_true": "({0} IS TRUE)",
    "is_distinct": "(NOT ({0} <=> {1}))",
    "concat": "concat({0}, {1})",
    "int_to_float": "cast({0} AS DOUBLE)",
    "float_to_int": "CASE WHEN {0} >= -9.223372036854775808E18D AND {0} < 9.223372036854775808E18D "
    "THEN cast({0} AS BIGINT) END",
    "scaled_int": "floor(cast({0} AS DOUBLE) * {1} + 0.5D)",
    "scaled_whole": f"if({{1}} = 1.0D, {{0}}, floor({_SCALED}))",
    # From 2⁵² on every FLOAT is whole. NaN is greater in Spark.
    "scaled_rest": f"if({{1}} = 1.0D OR abs({_SCALED}) >= {float(1 << 52)}D, 0L, "
    f"floor(({_SCALED} - floor({_SCALED})) * {_REST_UNITS}))",
    "sample_rate": "1.0D",
    "sample_groups": "{0}",
    "estimate_low_int": (
        f"if({_NO_MARGIN}, {{0}}, if(floor({_BELOW}) < {{2}}, {{2}}, floor({_BELOW})))"
    ),
    "estimate_high_int": f"if({_NO_MARGIN}, {{0}}, ceil(cast({{0}} AS DOUBLE) + sqrt({{1}})))",
    "estimate_low_float": f"if({_NO_MARGIN}, {{0}}, if({_BELOW} < {{2}}, {{2}}, {_BELOW}))",
    "estimate_high_float": f"if({_NO_MARGIN}, {{0}}, {{0}} + sqrt({{1}}))",
    "bool_to_int": "cast({0} AS BIGINT)",
    "int_to_bool": "({0} <> 0L)",
    "bool_to_string": "cast({0} AS STRING)",
    "int_to_string": "cast({0} AS STRING)",
    "ip_to_int": "CASE WHEN substring({0}, 1, 12) = " + _V4_PREFIX + " THEN "
    "cast(conv(hex(substring({0}, 13, 4)), 16, 10) AS BIGINT) END",
    "int_to_ip": "CASE WHEN {0} BETWEEN 0L AND 4294967295L THEN "
    f"concat({_V4_PREFIX}, unhex(lpad(hex({{0}}), 8, '0'))) END",
    "ts_diff": "(cast(({0} - {1}) AS DOUBLE) / 1000000.0D)",
    "ts_add": "({0} + {1})",
    "ts_sub": "({0} - {1})",
    "ts_idiv": "({0} div {1})",
    "ts_to_int": "{0}",
    "int_to_ts": "{0}",
    "non_temporal": "{0}",
    "increasing": "{0}",
    "decreasing": "{0}",
    "banded": "{0}",
    "str_match_start": "startswith({0}, {1})",
    "str_exists_substr": "contains({0}, {1})",
    "length": "cast(length({0}) AS BIGINT)",
    **dict.fromkeys(
        ("hash_int", "hash_mac", "hash_timestamp", "hash_interval", "hash_ip", "hash_float"),
        "if({0} IS NULL, NULL, xxhash64({0}))",
    ),
    "hash_string": "if({0} IS NULL, NULL, xxhash64(encode({0}, 'ISO-8859-1')))",
    "lower": f"translate({{0}}, '{_UPPER}', '{_UPPER.lower()}')",
    "upper": f"translate({{0}}, '{_UPPER.lower()}', '{_UPPER}')",
}


def to_sql(expression: Expression, leaf: Leaf) -> str:
    """Return the Spark SQL text of ``expression``; ``leaf`` returns the text of a column.

    A function without a text of its own becomes a call of the Arrow function that
    ``engine/spark/sql/udf.py`` registers under ``udf_name``.
    """
    if isinstance(expression, Literal):
        return _literal(expression)
    if isinstance(expression, Column | PacketField):
        return leaf(expression)
    if expression.function == "in_table":
        return _in_table(expression, to_sql(expression.arguments[0], leaf))
    arguments = [to_sql(argument, leaf) for argument in expression.arguments]
    special = _VARIADIC.get(expression.function)
    if special is not None:
        return special(arguments)
    template = _TEMPLATES.get(expression.function)
    if template is not None:
        return template.format(*arguments)
    return f"{udf_name(expression)}({', '.join(arguments)})"


def select_list(columns: Iterable[NamedExpression], leaf: Leaf | None = None) -> str:
    """Return computed columns as SELECT lists them; ``leaf`` is ``column_leaf`` by default."""
    leaf = leaf or column_leaf
    return ", ".join(f"{to_sql(c.expression, leaf)} AS {quote(c.name)}" for c in columns)


def where(predicate: Expression | None) -> str:
    """Return a WHERE clause with a space before it, "" where every row passes."""
    return "" if predicate is None else f" WHERE {to_sql(predicate, column_leaf)}"


def needs_udf(call: Call) -> bool:
    """Return whether Spark has no built-in expression for this call."""
    if call.function == "in_table":
        return not constant_tables.is_text(call)
    return call.function not in _TEMPLATES and call.function not in _VARIADIC


def udf_name(call: Call) -> str:
    """Return the name under which an Arrow function for this call is registered."""
    if call.function == "in_table":
        return constant_tables.function_name(call)
    kinds = "_".join(argument.type.value.lower() for argument in call.arguments)
    return f"gscope_{call.function}_{kinds}"


def hash_text(kind: GsqlType, text: str) -> str:
    """Return the hash of ``text``, whose values are of ``kind``."""
    return _TEMPLATES[HASH_OF[kind]].format(text)


def quote(name: str) -> str:
    """Return ``name`` as a Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def column_leaf(column: Column | PacketField) -> str:
    """Return a column by its name, the usual ``leaf``."""
    return quote(column.name)


def _in_table(call: Call, operand: str) -> str:
    if not constant_tables.is_text(call):
        return f"{constant_tables.function_name(call)}({operand})"
    return f"({operand} IN ({', '.join(map(_literal, constant_tables.choices(call)))}))"


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return f"cast(NULL AS {SPARK_TYPES[literal.type]})"
    match literal.type:
        case GsqlType.BOOL:
            return "true" if value else "false"
        case GsqlType.FLOAT:
            return _float(float(value))
        case GsqlType.STRING:
            assert isinstance(value, bytes)
            return f"decode(X'{value.hex()}', 'ISO-8859-1')"
        case GsqlType.IP:
            return f"X'{int(value):032x}'"
        case _:
            # Spark reads the sign apart from the digits: the least integer has no literal.
            return "(-9223372036854775807L - 1L)" if value == MIN_INT else f"{int(value)}L"


def _float(value: float) -> str:
    if math.isnan(value):
        return "double('NaN')"
    if math.isinf(value):
        return f"double('{'-' if value < 0 else ''}Infinity')"
    return f"{value!r}D"


def _case(arguments: list[str]) -> str:
    pairs = zip(arguments[:-1:2], arguments[1:-1:2], strict=True)
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    return f"(CASE {whens} ELSE {arguments[-1]} END)"


def _shift(function: str, *, keeps_sign: bool) -> Callable[[list[str]], str]:
    """Return a shift by any count: NULL if it is negative, no bit of the value from 64 on."""

    def shifted(arguments: list[str]) -> str:
        value, count = arguments
        known = _SHIFT_COUNT.fullmatch(count)
        if known and int(known[1]) < 64:
            return f"{function}({value}, {known[1]})"
        beyond = f"shiftright({value}, 63)" if keeps_sign else f"({value} & 0L)"
        inside = f"{function}({value}, cast({count} AS INT))"
        return (
            f"(CASE WHEN {count} < 0L THEN NULL WHEN {count} > 63L THEN {beyond} ELSE {inside} END)"
        )

    return shifted


def _named(function: str) -> Callable[[list[str]], str]:
    def call(arguments: list[str]) -> str:
        # Spark's least and greatest do not accept a single argument.
        return arguments[0] if len(arguments) == 1 else f"{function}({', '.join(arguments)})"

    return call


_SHIFT_COUNT = re.compile("([0-9]+)L")

_VARIADIC: dict[str, Callable[[list[str]], str]] = {
    "case": _case,
    "coalesce": _named("coalesce"),
    "in": lambda arguments: f"({arguments[0]} IN ({', '.join(arguments[1:])}))",
    "shl": _shift("shiftleft", keeps_sign=False),
    "shr": _shift("shiftright", keeps_sign=True),
    "min_of": _named("least"),
    "max_of": _named("greatest"),
}
