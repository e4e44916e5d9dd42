"""Comparison as code, type by type, and membership in tables of constants.

FLOAT is in Spark's order, STRING and IP are compared as unsigned bytes. Membership is a call with
the table's address, whatever the table's length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.scope import Lowered, Scope
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Call


def equals(scope: Scope, a: Lowered, b: Lowered) -> str:
    """Return code for whether two values of one type, neither of them NULL, are equal."""
    if GsqlType.NULL in (a.type, b.type):
        return "False"
    if a.type is GsqlType.FLOAT:
        code = f"({a.code} == {b.code}) | (({a.code} != {a.code}) & ({b.code} != {b.code}))"
    elif a.type is GsqlType.IP:
        (high_a, low_a), (high_b, low_b) = a.parts, b.parts
        code = f"({high_a} == {high_b}) & ({low_a} == {low_b})"
    elif a.type is GsqlType.STRING:
        code = f"same_bytes({', '.join((*a.parts, *b.parts))})"
    else:
        code = f"{a.code} == {b.code}"
    return scope.value(code)


def less(scope: Scope, a: Lowered, b: Lowered) -> str:
    """Return code for whether ``a`` is before ``b``, neither of them NULL."""
    if GsqlType.NULL in (a.type, b.type):
        return "False"
    if a.type is GsqlType.FLOAT:
        code = f"({a.code} < {b.code}) | (({a.code} == {a.code}) & ({b.code} != {b.code}))"
    elif a.type is GsqlType.IP:
        (high_a, low_a), (high_b, low_b) = a.parts, b.parts
        code = f"ult({high_a}, {high_b}) | (({high_a} == {high_b}) & ult({low_a}, {low_b}))"
    elif a.type is GsqlType.STRING:
        code = f"compare_bytes({', '.join((*a.parts, *b.parts))}) < 0"
    elif a.type is GsqlType.BOOL:
        code = f"(not {a.code}) & {b.code}"
    else:
        code = f"{a.code} < {b.code}"
    return scope.value(code)


def _negated(scope: Scope, code: str) -> str:
    return scope.value(f"not {code}")


_RULES: dict[str, Callable[[Scope, Lowered, Lowered], str]] = {
    "eq": equals,
    "ne": lambda scope, a, b: _negated(scope, equals(scope, a, b)),
    "lt": less,
    "ge": lambda scope, a, b: _negated(scope, less(scope, a, b)),
    "gt": lambda scope, a, b: less(scope, b, a),
    "le": lambda scope, a, b: _negated(scope, less(scope, b, a)),
}


def _compare(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    a, b = arguments
    return Lowered(call.type, (_RULES[call.function](scope, a, b),), scope.either(a.null, b.null))


COMPARISONS = dict.fromkeys(_RULES, _compare)

_SEARCHES = {GsqlType.FLOAT: "is_in_floats", GsqlType.IP: "is_in_addresses"}


def lower_in_table(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    """Return the code of a membership test."""
    value, table = arguments
    parts = [f"1 if {value.code} else 0"] if value.type is GsqlType.BOOL else list(value.parts)
    search = _SEARCHES.get(value.type, "is_in_words")
    found = scope.value(f"{search}({', '.join([table.parts[0], *parts])})")
    return Lowered(call.type, (found,), value.null)
