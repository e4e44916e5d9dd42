"""Three-valued logic, and functions that choose among their arguments, as code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.comparisons import equals, less
from gscope.capture.lfta.codegen.scope import ALWAYS, Lowered, Scope, null_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Call


def _and(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    a, b = arguments
    if any(x.is_literal and x.literal is False for x in arguments):
        return Lowered(call.type, ("False",), is_literal=True, literal=False)
    for x, other in ((a, b), (b, a)):
        if x.is_literal and x.literal is True:
            return other
    value = scope.value(f"{scope.is_true(a)} & {scope.is_true(b)}")
    if a.null is None and b.null is None:
        return Lowered(call.type, (value,))
    either = scope.either(a.null, b.null)
    false = scope.value(f"{scope.is_false(a)} | {scope.is_false(b)}")
    return Lowered(call.type, (value,), scope.value(f"{either} & (not {false})"))


def _or(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    a, b = arguments
    if any(x.is_literal and x.literal is True for x in arguments):
        return Lowered(call.type, ("True",), is_literal=True, literal=True)
    for x, other in ((a, b), (b, a)):
        if x.is_literal and x.literal is False:
            return other
    value = scope.value(f"{scope.is_true(a)} | {scope.is_true(b)}")
    either = scope.either(a.null, b.null)
    null = None if either is None else scope.value(f"{either} & (not {value})")
    return Lowered(call.type, (value,), null)


def _is_null(_scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    null = arguments[0].null
    if null is None or null == ALWAYS:
        literal = null == ALWAYS
        return Lowered(call.type, (str(literal),), is_literal=True, literal=literal)
    return Lowered(call.type, (null,))


def _is_true(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    return Lowered(call.type, (scope.is_true(arguments[0]),))


def _is_distinct(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    a, b = arguments
    if a.is_always_null or b.is_always_null:
        present = b if a.is_always_null else a
        if present.is_always_null:
            return Lowered(call.type, ("False",), is_literal=True, literal=False)
        if present.null is None:
            return Lowered(call.type, ("True",), is_literal=True, literal=True)
        return Lowered(call.type, (scope.value(f"not {present.null}"),))
    differ = scope.value(f"not {equals(scope, a, b)}")
    if a.null is None and b.null is None:
        return Lowered(call.type, (differ,))
    first, second = a.null or "False", b.null or "False"
    either = scope.value(f"{first} | {second}")
    one = scope.value(f"{first} != {second}")
    return Lowered(call.type, (scope.value(f"{one} if {either} else {differ}"),))


def _choose(scope: Scope, condition: str, yes: Lowered, no: Lowered, call: Call) -> Lowered:
    """Return ``yes`` if the boolean ``condition`` holds, else ``no``."""
    if condition in ("True", "False"):
        return yes if condition == "True" else no
    blank = null_literal(call.type).parts
    parts_yes = blank if yes.is_always_null else yes.parts
    parts_no = blank if no.is_always_null else no.parts
    parts = tuple(
        scope.value(f"{a} if {condition} else {b}")
        for a, b in zip(parts_yes, parts_no, strict=True)
    )
    null = None
    if yes.is_always_null and no.is_always_null:
        null = ALWAYS
    elif yes.null is not None or no.null is not None:
        null = scope.value(f"{yes.null or 'False'} if {condition} else {no.null or 'False'}")
    return Lowered(call.type, parts, null, is_ipv4=_all_ipv4(yes, no))


def _all_ipv4(*choices: Lowered) -> bool:
    return all(choice.is_ipv4 for choice in choices)


def _case(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    result = arguments[-1]
    pairs = list(zip(arguments[:-1:2], arguments[1::2], strict=True))
    for condition, value in reversed(pairs):
        result = _choose(scope, scope.is_true(condition), value, result, call)
    return result


def _coalesce(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    result = arguments[-1]
    for value in reversed(arguments[:-1]):
        missing = value.null or "False"
        result = _choose(scope, missing, result, value, call)
    return result


def _in(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    value, *choices = arguments
    tests = [equals(scope, value, choice) for choice in choices]
    null = scope.either(value.null, *(choice.null for choice in choices))
    found = scope.value(" | ".join(f"({test})" for test in tests))
    return Lowered(call.type, (found,), null)


def _extreme(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    """Return the first of the least (or greatest) arguments that are not NULL."""
    result, *rest = arguments
    for value in rest:
        if value.is_always_null:
            continue
        if result.is_always_null:
            result = value
            continue
        first, second = (value, result) if call.function == "min_of" else (result, value)
        better = less(scope, first, second)
        if result.null is not None:
            better = scope.value(f"{result.null} | {better}")
        if value.null is not None:
            better = scope.value(f"(not {value.null}) & {better}")
        chosen = _choose(scope, better, value, result, call)
        both = None
        if value.null is not None and result.null is not None:
            both = scope.value(f"{value.null} & {result.null}")
        result = chosen.with_null(both)
    return result


CHOICES = {
    "and": _and,
    "or": _or,
    "is_null": _is_null,
    "is_true": _is_true,
    "is_distinct": _is_distinct,
    "case": _case,
    "coalesce": _coalesce,
    "in": _in,
    "min_of": _extreme,
    "max_of": _extreme,
}
