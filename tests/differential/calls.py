"""Random calls of aggregates."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING
from zlib import crc32

from tests.differential.growth import integer
from tests.differential.syntax import Expression, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.differential.growth import Grower

FILTERED = 0.15
"""The part of the aggregates that have a FILTER."""

PLAIN: dict[Type, tuple[tuple[str, Type], ...]] = {
    Type.INT: (
        *(("count(*)", Type.INT),) * 3,
        *((f"{name}({{0}})", Type.INT) for name in ("sum", "min", "max", "sum", "max")),
        *((f"{name}({{0}})", Type.INT) for name in ("or_aggr", "and_aggr", "xor_aggr")),
        ("sum(DISTINCT {0})", Type.INT),
        *(
            (f"{name}{{0}})", kind)
            for name in ("count(", "count(DISTINCT ", "count_distinct(", "count_dups(")
            for kind in (Type.INT, Type.IP, Type.STRING)
        ),
    ),
    Type.BOOL: (("bool_or({0})", Type.BOOL), ("bool_and({0})", Type.BOOL)),
    Type.FLOAT: (
        *(("avg({0})", Type.INT),) * 2,
        *((f"{name}", Type.INT) for name in ("median({0})", "quantile({0}, 0.25)")),
        ("avg(DISTINCT {0})", Type.INT),
        *((f"{name}({{0}})", Type.FLOAT) for name in ("sum", "avg", "min", "max")),
    ),
    Type.IP: (("min({0})", Type.IP), ("max({0})", Type.IP)),
    Type.TIMESTAMP: (("min({0})", Type.TIMESTAMP), ("max({0})", Type.TIMESTAMP)),
    Type.STRING: (
        *(("min({0})", Type.STRING), ("max({0})", Type.STRING)),
        ("approx_top_k({0}, 2)", Type.INT),
    ),
}
"""For each type the aggregates that give it, with the type of their argument."""

OF_PACKETS: dict[Type, tuple[tuple[str, Type], ...]] = {
    kind: (
        *known,
        *((f"{name}({{0}})", kind) for name in ("first", "last") if kind is not Type.FLOAT),
        *((("count_diff({0})", Type.IP),) if kind is Type.INT else ()),
    )
    for kind, known in PLAIN.items()
}
"""The same over packets, whose order is known."""

RUNNING: dict[Type, tuple[tuple[str, Type], ...]] = {
    **PLAIN,
    Type.INT: (
        *PLAIN[Type.INT],
        *(("running_count(*)", Type.INT), ("running_count({0})", Type.IP)),
        *((f"{name}({{0}})", Type.INT) for name in ("running_sum", "running_sum", "sum_of_dups")),
        *((f"{name}({{0}})", Type.INT) for name in ("running_sum", "running_count")),
        *((f"moving_sum({{0}}, {length})", Type.INT) for length in (1, 2, 7)),
        *(("sum_of_dups({0})", Type.INT), ("sum_of_dups({0})", Type.IP)),
    ),
    Type.FLOAT: (*PLAIN[Type.FLOAT], ("moving_avg({0}, 3)", Type.INT)),
}
"""The same with CLOSING_WHEN."""


def calls(
    grower: Grower, known: Mapping[Type, Sequence[tuple[str, Type]]]
) -> Callable[[Type], Expression | None]:
    """Makes random aggregates of ``known`` over what ``grower`` grows.

    None for a type that none gives.
    """

    def make(wanted: Type) -> Expression | None:
        if wanted not in known:
            return None
        text, of = grower.random.choice(known[wanted])
        if text.endswith("(*)"):
            return _filtered(grower, Expression("aggregate", wanted, text=text))
        argument: Expression | None = _argument(grower, text, of)
        if argument is None:
            return None
        return _filtered(grower, Expression("aggregate", wanted, (argument,), text))

    return make


def _filtered(grower: Grower, call: Expression) -> Expression:
    """The aggregate, now and then of the tuples alone that a condition selects.

    Its chance is its own, so that a seed makes the queries that it made before there was FILTER.
    """
    own = replace(grower, random=Random(crc32(repr(call).encode())))
    if own.random.random() > FILTERED:
        return call
    place = len(call.arguments)
    text = f"{call.text} FILTER (WHERE {{{place}}})"
    return replace(call, text=text, arguments=(*call.arguments, own.condition()))


def _argument(grower: Grower, text: str, of: Type) -> Expression | None:
    """The argument of an aggregate; what adds up must not depend on the order of additions."""
    if text.startswith(("sum", "avg")) and of is Type.FLOAT:
        return grower.dyadic()
    if text.startswith(("median", "quantile")):
        return grower.random.choice(grower.small) if grower.small else None
    if of is Type.INT and text.startswith(_ADDING) and grower.random.random() < 0.3:
        return _near_the_edge(grower)
    made = grower.grow(of, grower.random.choice((0, 0, 1, 2)))
    return None if made.is_constant else made


_ADDING = ("sum", "avg", "running_sum", "moving_")


def _near_the_edge(grower: Grower) -> Expression | None:
    """Integers of which two or three add up to more than 64 bits hold, of either sign or both."""
    leaf = grower.known(Type.INT)
    if leaf is None:
        return None
    edge = integer(grower.random.choice((2**63 - 1, 2**62, -(2**62), -(2**63) + 1)))
    op = grower.random.choice("+-*&|")
    made = Expression(op, Type.INT, (leaf, edge))
    if op == "&":
        made = Expression("-", Type.INT, (edge, made))
    return made
