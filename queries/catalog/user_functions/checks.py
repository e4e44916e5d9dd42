"""Tests of declared facts on samples: a fact that an example contradicts is refused at start."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

from gscope.errors import UsageError, UserCodeError
from gscope.queries.catalog.user_functions.calls import UserFold, UserScalar
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from gscope.queries.catalog.user_functions.install import UserCode

_TRIALS = 300
_SEED = 1
_SECOND_NS = 10**9
_INTEGERS = (0, 1, 59, 60, 299, 1 << 16, 1 << 32, 1_700_000_000)
_TIMES_NS = (0, 1, _SECOND_NS, 60 * _SECOND_NS, 1_700_000_000 * _SECOND_NS)
_STEPS = (1, 2, 7, 59, 60, 61, 3600, 86_400, 10**9, 60 * 10**9)
_TEMPORAL = (GsqlType.INT, GsqlType.TIMESTAMP, GsqlType.INTERVAL, GsqlType.FLOAT)


def check_facts(code: UserCode) -> None:
    """Test the facts that ``code`` declares.

    Raises:
        UsageError: an example contradicts one.
    """
    if isinstance(code, UserScalar):
        _check_monotone(code)
    elif isinstance(code, UserFold) and code.facts.can_merge:
        _check_merge(code)


def sample(kind: GsqlType, chance: random.Random) -> Any:
    """Return a value of ``kind`` as packets might have it; extremes might overflow 64 bits."""
    match kind:
        case GsqlType.BOOL:
            return chance.random() < 0.5
        case GsqlType.FLOAT:
            return chance.choice((0.0, 0.5, -1.0, 1e6)) + chance.uniform(-10, 10)
        case GsqlType.STRING:
            return chance.choice((b"", b"a", b"10", b"GET / HTTP/1.1", b"\x00\xff"))
        case GsqlType.IP:
            return 0xFFFF << 32 | chance.getrandbits(32)
        case GsqlType.MAC:
            return chance.getrandbits(48)
        case _:
            choices = _INTEGERS if kind is GsqlType.INT else _TIMES_NS
            return chance.choice((1, 1, -1)) * chance.choice(choices) + chance.randint(-5, 5)


def _check_monotone(code: UserScalar) -> None:
    facts = code.facts
    for place, stretch in enumerate(facts.monotone):
        if stretch is None:
            continue
        if facts.parameters[place] not in _TEMPORAL or facts.returns not in _TEMPORAL:
            message = (
                f"{facts.name} of {code.file.path} is declared monotone in parameter {place + 1}, "
                f"but only {', '.join(kind.value for kind in _TEMPORAL)} have an order in time"
            )
            raise UsageError(message)
        chance = random.Random(_SEED)
        for _ in range(_TRIALS):
            low = [sample(kind, chance) for kind in facts.parameters]
            high = list(low)
            high[place] += chance.choice(_STEPS)
            _check_pair(code, low, high, place, stretch)


def _check_pair(
    code: UserScalar, low: list[Any], high: list[Any], place: int, stretch: Fraction
) -> None:
    below: Any
    above: Any
    try:
        below, above = code(*low), code(*high)
    except UserCodeError:
        # The function may reject values that it is not made for; a run reports that.
        return
    if below is None or above is None:
        return
    step = above - below
    largest = math.ceil(abs(stretch) * math.ceil(high[place] - low[place]))
    least, most = (0, largest) if stretch > 0 else (-largest, 0)
    if least <= step <= most:
        return
    facts = code.facts
    way = "falls" if step < 0 else "rises"
    if stretch and (step > 0) == (stretch > 0):
        way = f"rises by {step}" if step > 0 else f"falls by {-step}"
    message = (
        f"{facts.name} of {code.file.path} is declared with monotone {stretch} in parameter "
        f"{place + 1}, but from {_call(facts.name, low)} = {below} to {_call(facts.name, high)} = "
        f"{above} it {way}"
    )
    raise UsageError(message)


def _check_merge(code: UserFold) -> None:
    chance = random.Random(_SEED)
    for size in (1, 2, 3, 10, 50):
        values = [sample(code.facts.argument, chance) for _ in range(size)]
        cut = chance.randint(0, size)
        whole = _tried(lambda values=values: code.over_parts([values]))  # type: ignore[misc]
        parts = _tried(
            lambda values=values, cut=cut: code.over_parts([values[:cut], values[cut:]])  # type: ignore[misc]
        )
        if not _same(whole, parts):
            message = (
                f"merge of {code.facts.name} in {code.file.path} is wrong: {values} at once give "
                f"{whole}, merged from {cut} and {size - cut} of them {parts}"
            )
            raise UsageError(message)


def _tried(compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except UserCodeError as error:
        return str(error)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    # That both reject a sample is not a contradiction, whatever their messages are.
    return bool(left == right) or (isinstance(left, str) and isinstance(right, str))


def _call(name: str, values: list[Any]) -> str:
    return f"{name}({', '.join(map(str, values))})"
