"""What expressions of the differential test mean.

It is written from the language's reference and not from gscope's code.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from tests.differential import addresses
from tests.differential.syntax import Type
from tests.reference.reference import when

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.differential.syntax import Expression, Value

Rows = tuple["Mapping[str, Any]", ...]


FILLED = "="
"""In a row that an outer join made up: terms that have a value although their columns have none."""


def value_of(
    e: Expression, rows: Rows, of_group: Callable[[Expression], Value] | None = None
) -> Any:
    """The value of ``e``.

    Args:
        rows: one of each input; an input that is missing is empty.
        of_group: gives the values of keys and aggregates.
    """
    match e.op:
        case "literal":
            return e.value
        case "column":
            return rows[e.side].get(e.text)
        case "key" | "aggregate":
            assert of_group is not None
            return of_group(e)
    for row in rows:
        if FILLED in row and e in row[FILLED]:
            return row[FILLED][e]
    values = [value_of(argument, rows, of_group) for argument in e.arguments]
    lazy = LAZY.get(e.op)
    if lazy is not None:
        return lazy(e, values)
    if None in values:
        return None
    return STRICT[e.op](e, *values)


def holds(condition: Expression, rows: Rows) -> bool:
    """Whether a condition over rows is true; NULL is not."""
    return truth(value_of(condition, rows))


def truth(value: Value) -> bool:
    """Whether a condition's value chooses the row."""
    return value is not None and value != 0


def wrapped(value: int) -> int:
    """An integer in 64 bits, two's complement."""
    low = value % (1 << 64)
    return low - (1 << 64) if low >> 63 else low


def order(value: Any) -> Any:
    """What values are compared by: false is 0, and there is one NaN, above all numbers."""
    if isinstance(value, float) and math.isnan(value):
        return math.inf, 1
    return value if isinstance(value, bytes) else (value, 0)


def _truncated(a: int, b: int) -> int:
    """The quotient without its fraction."""
    quotient = abs(a) // abs(b)
    return wrapped(quotient if (a < 0) == (b < 0) else -quotient)


def _to_int(value: float) -> int | None:
    """Without the fraction; NULL for what 64 bits cannot hold."""
    number = math.trunc(value) if math.isfinite(value) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _is_float(e: Expression) -> bool:
    return any(argument.type is Type.FLOAT for argument in e.arguments)


def _arithmetic(
    on_ints: Callable[[int, int], int], on_floats: Callable[[float, float], float]
) -> Any:
    def rule(e: Expression, a: Any, b: Any) -> Any:
        if _is_float(e):
            return on_floats(float(a), float(b))
        return wrapped(on_ints(int(a), int(b)))

    return rule


def _add(e: Expression, a: Any, b: Any) -> Any:
    return float(a) + float(b) if _is_float(e) else wrapped(int(a) + int(b))


def _subtract(e: Expression, a: Any, b: Any) -> Any:
    kinds = {argument.type for argument in e.arguments}
    if kinds == {Type.TIMESTAMP}:
        return wrapped(a - b) / 1e6
    return float(a) - float(b) if _is_float(e) else wrapped(int(a) - int(b))


def _divide(e: Expression, a: Any, b: Any) -> Any:
    """By a constant integer without a fraction.

    A timestamp by an interval too; else a true ratio.
    """
    if b == 0:
        return None
    left, right = e.arguments
    if left.type is Type.TIMESTAMP:
        return _truncated(a, b)
    is_of_groups = any(part.op == "aggregate" for part in left.walk())
    if not _is_float(e) and right.is_constant and not is_of_groups:
        return _truncated(int(a), int(b))
    return float(a) / float(b)


def _divide_whole(e: Expression, a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if _is_float(e):
        return _to_int(float(a) / float(b))
    return _truncated(int(a), int(b))


def _remainder(e: Expression, a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if _is_float(e):
        return math.fmod(float(a), float(b))
    a, b = int(a), int(b)
    return (abs(a) % abs(b)) * (-1 if a < 0 else 1)


def _shifted_left(value: int, count: int) -> int | None:
    if count < 0:
        return None
    return wrapped(value << count) if count < 64 else 0


def _and_bits(e: Expression, a: Any, b: Any) -> Any:
    left, right = (argument.type for argument in e.arguments)
    if Type.IP not in (left, right):
        return int(a) & int(b)
    return addresses.masked(a, b) if left is Type.IP else addresses.masked(b, a)


def _comparison(test: Callable[[Any, Any], bool]) -> Any:
    def rule(e: Expression, a: Any, b: Any) -> Any:
        left, right = (argument.type for argument in e.arguments)
        pair = compared(left, a, right, b)
        return None if None in pair else test(order(pair[0]), order(pair[1]))

    return rule


def compared(left: Type, a: Any, right: Type, b: Any) -> tuple[Any, Any]:
    """Two values in the one type that they are compared in.

    A number beside an address is the IPv4 address with that value, milliseconds beside an interval
    are that; a NULL may come of it.
    """
    kinds = {left, right}
    if kinds == {Type.IP, Type.INT}:
        return (addresses.ipv4(a), b) if left is Type.INT else (a, addresses.ipv4(b))
    if kinds == {Type.FLOAT, Type.INTERVAL}:
        return tuple(v / 1e6 if t is Type.INTERVAL else v for t, v in ((left, a), (right, b)))
    if Type.FLOAT in kinds:
        return float(a), float(b)
    return a, b


def _all_of(e: Expression, values: list[Any]) -> Any:
    if any(value is not None and not value for value in values):
        return False
    return None if None in values else True


def _any_of(e: Expression, values: list[Any]) -> Any:
    if any(values):
        return True
    return None if None in values else False


def _not(value: Any) -> bool | None:
    return None if value is None else not value


def _equal(left: Expression, a: Any, right: Expression, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    one, other = compared(left.type, a, right.type, b)
    return None if one is None or other is None else order(one) == order(other)


def _in(e: Expression, values: list[Any]) -> bool | None:
    """Equal to one of the choices; not known to be absent among them if one is NULL."""
    first, *choices = e.arguments
    found = [
        _equal(first, values[0], choice, value)
        for choice, value in zip(choices, values[1:], strict=True)
    ]
    if True in found:
        return True
    return None if None in found else False


def _between(e: Expression, values: list[Any]) -> bool | None:
    (a, low, high), (x, y, z) = e.arguments, values
    tests: list[bool | None] = []
    for left, u, right, v in ((low, y, a, x), (a, x, high, z)):
        if u is None or v is None:
            tests.append(None)
            continue
        one, other = compared(left.type, u, right.type, v)
        tests.append(None if one is None or other is None else order(one) <= order(other))
    if False in tests:
        return False
    return None if None in tests else True


def _case(e: Expression, values: list[Any]) -> Any:
    for condition, result in zip(values[:-1:2], values[1::2], strict=True):
        if condition:
            return _as(e.type, result)
    return _as(e.type, values[-1])


def _simple_case(e: Expression, values: list[Any]) -> Any:
    for at in range(1, len(values) - 1, 2):
        if _equal(e.arguments[0], values[0], e.arguments[at], values[at]):
            return _as(e.type, values[at + 1])
    return _as(e.type, values[-1])


def _as(kind: Type, value: Any) -> Any:
    """A result of several choices in the type that they share."""
    if value is None:
        return None
    return {Type.FLOAT: float, Type.INT: int}.get(kind, lambda v: v)(value)


def _extreme(choose: Callable[..., Any]) -> Any:
    def rule(e: Expression, values: list[Any]) -> Any:
        present = [_as(e.type, value) for value in values if value is not None]
        return choose(present, key=order) if present else None

    return rule


def _like(e: Expression, text: bytes, pattern: bytes) -> bool:
    parts, at = [], 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        if byte == b"\\" and at + 1 < len(pattern):
            at += 1
            parts.append(re.escape(pattern[at : at + 1]))
        else:
            parts.append({b"%": b".*", b"_": b"."}.get(byte, re.escape(byte)))
        at += 1
    return re.fullmatch(b"".join(parts), text, re.DOTALL) is not None


def _text(e: Expression, value: Any) -> bytes:
    return _as_text(e.arguments[0].type, value)


def _as_text(kind: Type, value: Any) -> bytes:
    match kind:
        case Type.STRING:
            return bytes(value)
        case Type.IP:
            return addresses.shown(value).encode()
        case Type.BOOL:
            return b"true" if value else b"false"
        case Type.TIMESTAMP:
            return when(value).encode()
    return str(int(value)).encode()


def _joined_texts(e: Expression, values: list[Any]) -> bytes | None:
    """The texts of all arguments; ``concat`` leaves NULL out, ``||`` is NULL then."""
    if e.op == "||" and None in values:
        return None
    pairs = zip(e.arguments, values, strict=True)
    return b"".join(_as_text(a.type, v) for a, v in pairs if v is not None)


def _int(e: Expression, value: Any) -> int | None:
    match e.arguments[0].type:
        case Type.FLOAT:
            return _to_int(value)
        case Type.STRING:
            is_number = re.fullmatch(rb"[+-]?[0-9]+", value) is not None
            number = int(value) if is_number and len(value) < 30 else None
            return number if number is not None and wrapped(number) == number else None
        case Type.IP:
            return addresses.ipv4_value(value)
    return int(value)


def _substring(e: Expression, text: bytes, first: int, count: int | None = None) -> bytes:
    """The bytes at the places from ``first`` on, of which the first is 1."""
    places = enumerate(text, start=1)
    end = math.inf if count is None else first + max(count, 0)
    return bytes(byte for place, byte in places if first <= place < end)


def _distinct(e: Expression, values: list[Any]) -> bool:
    """Whether two values differ, NULL being a value like others."""
    (left, right), (a, b) = e.arguments, values
    if a is None or b is None:
        return (a is None) != (b is None)
    one, other = compared(left.type, a, right.type, b)
    return bool(order(one) != order(other))


def _null_if(e: Expression, values: list[Any]) -> Any:
    (left, right), (a, b) = e.arguments, values
    return None if _equal(left, a, right, b) else _as(e.type, a)


def _rounded(rule: Callable[[float], int]) -> Any:
    def apply(e: Expression, value: Any) -> Any:
        return float(rule(value)) if isinstance(value, float) and math.isfinite(value) else value

    return apply


def _extract(e: Expression, text: bytes, pattern: bytes) -> bytes | None:
    match = re.search(pattern, text, re.DOTALL)
    return match.group() if match else None


def _find(e: Expression, text: bytes, needle: bytes) -> int | None:
    return text.index(needle) if needle in text else None


LAZY: dict[str, Callable[[Expression, list[Any]], Any]] = {
    "and": _all_of,
    "or": _any_of,
    "in": _in,
    "not in": lambda e, v: _not(_in(e, v)),
    "between": _between,
    "not between": lambda e, v: _not(_between(e, v)),
    "case": _case,
    "simple case": _simple_case,
    "if_else": _case,
    "is null": lambda _, v: v[0] is None,
    "is not null": lambda _, v: v[0] is not None,
    "coalesce": lambda e, v: _as(e.type, next((x for x in v if x is not None), None)),
    **dict.fromkeys(("min_of", "least"), _extreme(min)),
    **dict.fromkeys(("max_of", "greatest"), _extreme(max)),
    "nullif": _null_if,
    "is distinct from": _distinct,
    "is not distinct from": lambda e, v: not _distinct(e, v),
    "is true": lambda _, v: v[0] is not None and bool(v[0]),
    "is not true": lambda _, v: not v[0],
    "is false": lambda _, v: v[0] is not None and not v[0],
    "is not false": lambda _, v: v[0] is None or bool(v[0]),
    **dict.fromkeys(("||", "concat"), _joined_texts),
}
"""Rules that see NULLs."""

STRICT: dict[str, Callable[..., Any]] = {
    "+": _add,
    "-": _subtract,
    "*": _arithmetic(lambda a, b: a * b, lambda a, b: a * b),
    "/": _divide,
    "div": _divide_whole,
    **dict.fromkeys(("%", "mod"), _remainder),
    "&": _and_bits,
    "|": lambda _, a, b: int(a) | int(b),
    "<<": lambda _, a, b: _shifted_left(int(a), b),
    ">>": lambda _, a, b: None if b < 0 else int(a) >> min(b, 64),
    "negative": lambda _, a: -a if isinstance(a, float) else wrapped(-int(a)),
    "invert": lambda _, a: ~int(a),
    "not": lambda _, a: not a,
    "=": _comparison(lambda a, b: a == b),
    "<>": _comparison(lambda a, b: a != b),
    "<": _comparison(lambda a, b: a < b),
    "<=": _comparison(lambda a, b: a <= b),
    ">": _comparison(lambda a, b: a > b),
    ">=": _comparison(lambda a, b: a >= b),
    "like": _like,
    "not like": lambda e, a, b: not _like(e, a, b),
    "abs": lambda _, a: abs(a) if isinstance(a, float) else wrapped(abs(a)),
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "round": _rounded(
        lambda a: math.trunc(a) + (abs(math.fmod(a, 1)) >= 0.5) * (1 if a > 0 else -1)
    ),
    "sqrt": lambda _, a: None if a < 0 else math.sqrt(a),
    "INT": _int,
    "FLOAT": lambda _, a: float(a),
    "STRING": _text,
    "ipv4": lambda _, a: addresses.ipv4_value(a),
    "prefix": lambda _, a, bits4, bits6: addresses.prefix(a, bits4, bits6),
    "in_net": lambda _, a, network: addresses.is_in(a, network.decode()),
    "is_private": lambda _, a: addresses.is_private(a),
    "length": lambda _, a: len(a),
    "lower": lambda _, a: a.lower(),
    "upper": lambda _, a: a.upper(),
    "to_hex": lambda _, a: a.hex().encode(),
    "str_truncate": lambda _, a, n: a[: max(n, 0)],
    "str_suffix": lambda _, a, n: a[len(a) - n :] if 0 < n < len(a) else a * (n > 0),
    **dict.fromkeys(("substr", "substring"), _substring),
    "str_find": _find,
    "str_regex_match": lambda _, a, b: re.search(b, a, re.DOTALL) is not None,
    "str_extract_regex": _extract,
    "byte_match_offset": lambda _, n, byte, a: a[n : n + 1] == bytes([byte]),
    "str_match_offset": lambda _, n, b, a: n <= len(a) and a[n : n + len(b)] == b,
    "to_int": lambda _, a: wrapped(int.from_bytes(a, "big")) if 1 <= len(a) <= 8 else None,
    "str_match_start": lambda _, a, b: a[: len(b)] == b,
    "str_exists_substr": lambda _, a, b: b in a,
    "non_temporal": lambda _, a: a,
    **dict.fromkeys(("date_trunc", "time_bucket"), lambda _, length, a: a - a % length),
}
"""Rules that see none: one makes NULL."""
