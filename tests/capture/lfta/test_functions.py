"""Every LFTA-safe function in a kernel gives what its ``evaluate`` gives, extremes included."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.lfta.lfta_builders import (
    IS_IP,
    block_of,
    field,
    ipv4,
    ipv6,
    literal,
    selection,
    udp,
)
from tests.capture.lfta.lfta_collect import answer, compiled, interpreted, run

from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.tables import pack_table
from gscope.queries.expressions.expressions import Literal, NamedExpression
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression, Value
    from gscope.queries.plan.program import Lfta

BOOL, INT, FLOAT, STRING = GsqlType.BOOL, GsqlType.INT, GsqlType.FLOAT, GsqlType.STRING
IP, MAC, TIMESTAMP, INTERVAL = GsqlType.IP, GsqlType.MAC, GsqlType.TIMESTAMP, GsqlType.INTERVAL

SMALLEST, LARGEST = -(2**63), 2**63 - 1
INTS: tuple[Value, ...] = (None, 0, 1, -1, SMALLEST, LARGEST, 7, -64, 2**32, 65)
V4, MAPPED = 0xFFFF << 32, 0xFFFE << 32
EXTREMES: dict[GsqlType, tuple[Value, ...]] = {
    BOOL: (None, True, False),
    INT: INTS,
    FLOAT: (None, 0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 1e19, -0.4),
    STRING: (None, b"", b"GET /", b"GET", b"xGET", b"\xff\x00", b"GET /index with more than eight"),
    IP: (
        None,
        V4 | 0x0A000001,
        MAPPED | 0x0A000001,
        V4 | 0xC0A80101,
        1 << 64 | V4 | 5,
        0,
        1 << 127,
        2**128 - 1,
        0xFC << 120 | 5,
        V4,
    ),
    MAC: (None, 0, 2**48 - 1, 0x020000000001),
    TIMESTAMP: (None, 0, 10**18 + 1, SMALLEST, LARGEST, -1),
    INTERVAL: (None, 0, 10**9, -1, LARGEST, 3),
}
CHOICES = max(map(len, EXTREMES.values()))

LITERALS: dict[str, tuple[Literal, ...]] = {
    "prefix": (literal(24), literal(57)),
    "in_net": (literal(V4 | 10 << 24, IP), literal(104)),
    "str_match_start": (literal(b"GET", STRING),),
    "str_exists_substr": (literal(b"GET", STRING),),
}
"""What a function gets for the parameters that must be constants, which come last."""


def chosen(type_: GsqlType, parameter: int) -> Expression:
    """A value of ``type_`` that a port of the packet chooses."""
    port = field(("srcPort", "destPort")[parameter % 2], nullable=False)
    *values, last = EXTREMES[type_]
    pairs = [(call("eq", port, literal(n)), literal(v, type_)) for n, v in enumerate(values)]
    return call("case", *(part for pair in pairs for part in pair), literal(last, type_))


def calls() -> list[NamedExpression]:
    """Calls of every LFTA-safe function; those that take any type once for each type."""
    made: list[Expression] = []
    for name, entry in FUNCTIONS.items():
        if not entry.is_lfta_safe:
            continue
        fixed = LITERALS.get(name, ())
        free = entry.parameters[: len(entry.parameters) - len(fixed)]
        for type_ in EXTREMES if any(p.type is None for p in free) else (INT,):
            arguments = [chosen(p.type or type_, n) for n, p in enumerate(free)]
            if name == "in":
                arguments = [arguments[0], *(literal(v, type_) for v in EXTREMES[type_][1:3])]
            if name == "in_table":
                if type_ is STRING:  # kernels make no test of a text but for equality
                    continue
                table = pack_table(EXTREMES[type_][2:], type_)
                arguments = [chosen(type_, 0), literal(table, STRING)]
            if name in ("coalesce", "min_of", "max_of"):
                arguments = [chosen(type_, 0), chosen(type_, 1)]
            made.append(call(name, *arguments, *fixed))
    return [NamedExpression(f"c{n}", expression) for n, expression in enumerate(made)]


PARTS = 4
"""Kernels that share the functions: numba's analysis recurses over the branches of one."""


@pytest.mark.parametrize("part", range(PARTS))
def test_every_lfta_safe_function_agrees_with_its_evaluate(part: int) -> None:
    is_ipv4 = call("eq", field("ipversion"), literal(4))
    lfta = selection(calls()[part::PARTS], is_ipv4)
    block = block_of([(0, ipv4(1, 2, udp(a, b))) for a, b in product(range(CHOICES), repeat=2)])
    expected, _ = run(interpreted(), [lfta], [block])
    rows, _ = run(compiled(), [lfta], [block])
    names = [str(getattr(column.expression, "function", "")) for column in lfta.columns]
    for mine, oracle in zip(
        answer(lfta, rows["lfta"]), answer(lfta, expected["lfta"]), strict=True
    ):
        wrong = [(n, a, b) for n, a, b in zip(names, mine, oracle, strict=True) if a != b]
        assert wrong == []


def address_lfta() -> Lfta:
    source = field("srcIP", nullable=False)
    destination = field("destIP", nullable=False)
    expressions: list[Expression] = [
        call("ip_mask", source, literal(0xFFFFFFF0)),
        call("ip_mask", source, literal(-256)),
        call("ip_to_int", source),
        call("prefix", source, literal(9), literal(40)),
        call("in_net", source, literal(V4 | 10 << 24, IP), literal(104)),
        call("in_net", source, literal(0x2001 << 112, IP), literal(16)),
        call("is_private", source),
        call("lt", source, destination),
        call("max_of", source, destination),
        call("eq", source, literal(V4 | 0x0A000001, IP)),
    ]
    columns = [NamedExpression(f"c{n}", expression) for n, expression in enumerate(expressions)]
    return selection(columns, IS_IP)


near_private = st.sampled_from([0x0A000001, 0xAC10FFFF, 0xAC200000, 0xC0A80000, 0, 2**32 - 1])
wide = st.integers(0, 2**128 - 1) | st.sampled_from([0xFC << 120, 0x2001 << 112, V4, V4 | 1])


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(near_private | st.integers(0, 2**32 - 1), near_private), min_size=1),
    st.lists(st.tuples(wide, wide)),
)
def test_functions_of_addresses_agree_on_both_versions(
    narrow: list[tuple[int, int]], broad: list[tuple[int, int]]
) -> None:
    lfta = address_lfta()
    packets = [ipv4(a, b, udp(1, 2)) for a, b in narrow] + [ipv6(a, b, udp(1, 2)) for a, b in broad]
    block = block_of([(0, packet) for packet in packets])
    expected, _ = run(interpreted(), [lfta], [block])
    rows, _ = run(compiled(), [lfta], [block])
    assert answer(lfta, rows["lfta"]) == answer(lfta, expected["lfta"])


@pytest.mark.parametrize("name", sorted(n for n, e in FUNCTIONS.items() if e.is_lfta_safe))
def test_the_tests_above_call_every_lfta_safe_function(name: str) -> None:
    assert name in {getattr(column.expression, "function", "") for column in calls()}
