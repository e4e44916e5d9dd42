"""Comparison, three-valued logic and choice."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.scalar.entry import (
    KEEPS,
    FunctionEntry,
    Parameter,
    any_nullable,
)
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Expression, Value

_BOOL = GsqlType.BOOL
_ANY = Parameter(None)


def order_key(value: Any) -> Any:
    """Return the key by which values of one type compare, as in Spark.

    NaN equals itself and is greater than all numbers. -0.0 equals 0.0; STRING and IP compare as
    unsigned bytes.
    """
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value)
    return value


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def _distinct(a: Value, b: Value) -> bool:
    if a is None or b is None:
        return a is not b
    return bool(order_key(a) != order_key(b))


def _case(*arguments: Value) -> Value:
    for condition, result in zip(arguments[:-1:2], arguments[1::2], strict=True):
        if condition:
            return result
    return arguments[-1]


def _case_null(arguments: Sequence[Expression]) -> bool:
    return any_nullable((*arguments[1:-1:2], arguments[-1]))


def _coalesce(*arguments: Value) -> Value:
    return next((value for value in arguments if value is not None), None)


def _all_nullable(arguments: Sequence[Expression]) -> bool:
    return all(argument.is_nullable for argument in arguments)


def _in(value: Value, *choices: Value) -> bool:
    return order_key(value) in [order_key(choice) for choice in choices]


def _extreme(choose: Callable[..., Any]) -> Callable[..., Value]:
    def extreme(*arguments: Value) -> Value:
        present = [value for value in arguments if value is not None]
        result: Value = choose(present, key=order_key) if present else None
        return result

    return extreme


@lru_cache(maxsize=256)
def _like_pattern(pattern: bytes) -> re.Pattern[bytes]:
    r"""Return a LIKE pattern as a regular expression.

    ``%`` is any bytes, ``_`` any one byte, and ``\`` takes the next byte literally.
    """
    parts = []
    characters = iter(pattern)
    for byte in characters:
        if byte == ord("\\"):
            parts.append(re.escape(bytes([next(characters, byte)])))
        else:
            parts.append({ord("%"): b".*", ord("_"): b"."}.get(byte) or re.escape(bytes([byte])))
    return re.compile(b"".join(parts), re.DOTALL)


def _like(text: bytes, pattern: bytes) -> bool:
    return _like_pattern(pattern).fullmatch(text) is not None


_COMPARISONS: tuple[tuple[str, Callable[..., bool]], ...] = (
    ("eq", lambda a, b: order_key(a) == order_key(b)),
    ("ne", lambda a, b: order_key(a) != order_key(b)),
    ("lt", lambda a, b: order_key(a) < order_key(b)),
    ("le", lambda a, b: order_key(a) <= order_key(b)),
    ("gt", lambda a, b: order_key(a) > order_key(b)),
    ("ge", lambda a, b: order_key(a) >= order_key(b)),
)
_TWO_BOOLS = (Parameter(_BOOL), Parameter(_BOOL))

_FUNCTIONS = (
    *(FunctionEntry(name, (_ANY, _ANY), _BOOL, rule) for name, rule in _COMPARISONS),
    FunctionEntry("and", _TWO_BOOLS, _BOOL, _and, is_strict=False, makes_null=any_nullable),
    FunctionEntry("or", _TWO_BOOLS, _BOOL, _or, is_strict=False, makes_null=any_nullable),
    FunctionEntry("not", (Parameter(_BOOL),), _BOOL, lambda a: not a),
    FunctionEntry(
        "is_null", (_ANY,), _BOOL, lambda a: a is None, is_strict=False, is_never_null=True
    ),
    FunctionEntry(
        "is_true",
        (Parameter(_BOOL),),
        _BOOL,
        lambda a: a is True,
        is_strict=False,
        is_never_null=True,
    ),
    FunctionEntry(
        "is_distinct", (_ANY, _ANY), _BOOL, _distinct, is_strict=False, is_never_null=True
    ),
    FunctionEntry(
        "case",
        (Parameter(_BOOL), _ANY, _ANY),
        None,
        _case,
        repeats=2,
        is_strict=False,
        makes_null=_case_null,
        cost=2,
    ),
    FunctionEntry(
        "coalesce",
        (_ANY,),
        None,
        _coalesce,
        repeats=1,
        is_strict=False,
        makes_null=_all_nullable,
    ),
    FunctionEntry("in", (_ANY, Parameter(None, is_literal=True)), _BOOL, _in, repeats=1, cost=3),
    FunctionEntry(
        "like",
        (Parameter(GsqlType.STRING), Parameter(GsqlType.STRING, is_literal=True)),
        _BOOL,
        _like,
        cost=100,
        is_lfta_safe=False,
    ),
    *(
        FunctionEntry(
            name,
            (_ANY,),
            None,
            _extreme(choose),
            repeats=1,
            is_strict=False,
            makes_null=_all_nullable,
            gains=(KEEPS,),
        )
        for name, choose in (("min_of", min), ("max_of", max))
    ),
    FunctionEntry("non_temporal", (_ANY,), None, lambda a: a, cost=0),
)
LOGIC = {entry.name: entry for entry in _FUNCTIONS}
