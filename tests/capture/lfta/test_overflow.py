"""What overflows 64 bits wraps in kernels, whatever is computed of it afterwards.

A compiler that may assume that nothing overflows draws conclusions from known ranges ("a sequence
number times a positive constant is not negative"), which show only in what reads the product. So
each function that can overflow is computed of packet fields, whose ranges are known, and each
function of the catalog of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.capture.lfta.lfta_builders import (
    aggregation,
    block_of,
    count,
    epoch_of,
    field,
    ipv4,
    literal,
    partial,
    selection,
    tcp,
)
from tests.capture.lfta.lfta_collect import answer, compiled, interpreted, run

from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import NamedExpression
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.capture.sources.block import Block
    from gscope.queries.catalog.scalar.entry import Parameter
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta

INT, FLOAT, BOOL = GsqlType.INT, GsqlType.FLOAT, GsqlType.BOOL
TIMESTAMP, INTERVAL = GsqlType.TIMESTAMP, GsqlType.INTERVAL
SMALLEST, LARGEST = -(2**63), 2**63 - 1
MULTIPLIER = 2654435761 << 4

SEQUENCE = field("sequence_number", nullable=False)
PORT = field("srcPort", nullable=False)
PRODUCT = call("mul_int", SEQUENCE, literal(MULTIPLIER))
LEAST = call("shl", call("bool_to_int", call("lt", PORT, literal(40000))), literal(63))
"""The least number where the port is below 40000, otherwise 0."""

OVERFLOWING: dict[str, Expression] = {
    "add_int": call("add_int", SEQUENCE, literal(LARGEST - 5)),
    "sub_int": call("sub_int", literal(SMALLEST + 5), SEQUENCE),
    "mul_int": PRODUCT,
    "neg_int": call("neg_int", LEAST),
    "abs_int": call("abs_int", LEAST),
    "idiv_int": call("idiv_int", LEAST, literal(-1)),
    "floor_div": call("floor_div", LEAST, literal(-1)),
    "shl": call("shl", SEQUENCE, literal(32)),
    "ts_add": call("ts_add", field("timestamp"), literal(LARGEST - 7, INTERVAL)),
    "ts_sub": call(
        "ts_sub",
        call("int_to_ts", call("sub_int", literal(-9), SEQUENCE)),
        literal(LARGEST, INTERVAL),
    ),
    "ts_diff": call(
        "float_to_int",
        call("ts_diff", call("int_to_ts", PRODUCT), call("int_to_ts", call("bit_not", PRODUCT))),
    ),
    "ts_idiv": call("ts_idiv", call("int_to_ts", LEAST), literal(-1, INTERVAL)),
}
"""A call of each function of integers that can overflow, and does for some packets below."""

ASSUMED = ("add_int", "sub_int", "mul_int", "shl", "ts_add", "ts_sub")
"""Those of which a compiler may think that it knows the sign of the result."""

CANNOT_OVERFLOW = {
    *("mod_int", "bit_and", "bit_or", "bit_xor", "bit_not", "shr"),
    *("ip_to_int", "ts_to_int", "int_to_ts", "bool_to_int", "float_to_int", "length"),
    *("hash_int", "hash_mac", "hash_timestamp", "hash_interval", "hash_ip"),
}
"""Functions of integers whose result always fits, or is made of bits (hashes)."""

BESIDE: dict[GsqlType, tuple[Expression, ...]] = {
    INT: (literal(100), PORT),
    TIMESTAMP: (field("timestamp"),),
    INTERVAL: (literal(10**9, INTERVAL),),
    FLOAT: (literal(0.5, FLOAT),),
    BOOL: (call("lt", PORT, literal(30000)),),
}
"""What stands beside the argument that has overflowed; ranges of all of them are known."""


def consumers(value: Expression) -> Iterator[Expression]:
    """Every LFTA-safe function that takes a value of this type, of ``value`` in each place."""
    for name, entry in FUNCTIONS.items():
        for place, parameter in enumerate(entry.parameters):
            fits = not parameter.is_literal and parameter.type in (None, value.type)
            if not entry.is_lfta_safe or not fits:
                continue
            beside = [_beside(other, value.type, place) for other in entry.parameters]
            if name in ("min_of", "max_of", "coalesce"):
                beside.append(BESIDE[value.type][-1])
            beside[place] = value
            if None not in beside:
                yield call(name, *(argument for argument in beside if argument is not None))


def _beside(parameter: Parameter, kind: GsqlType, place: int) -> Expression | None:
    known = BESIDE.get(parameter.type or kind)
    if known is None:
        return None
    return known[0] if parameter.is_literal else known[place % len(known)]


def composed() -> list[Expression]:
    """All consumers of all that overflows, and conditions as queries write them."""
    made = [call for name in ASSUMED for call in consumers(OVERFLOWING[name])]
    for value in OVERFLOWING.values():
        number = call("ts_to_int", value) if value.type is TIMESTAMP else value
        made += [
            number,
            call("lt", call("mod_int", number, literal(100)), literal(10)),
            call("ge", number, literal(0)),
            call("shr", number, literal(60)),
            call("gt", call("idiv_int", number, literal(10**9)), literal(0)),
            call("abs_int", call("mul_int", number, literal(3))),
            call("lt", number, call("add_int", number, literal(1))),
            call("int_to_float", call("add_int", number, SEQUENCE)),
        ]
    return list(dict.fromkeys(made))


def traffic() -> Block:
    """Sequence numbers and ports from end to end of their ranges."""
    numbers = [0, 1, 2, 5, 6, 7, 99, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32 - 2]
    numbers += [(n * 2654435761 + 12345) % 2**32 for n in range(80)]
    return block_of(
        [
            (1_700_000_000 * 10**9 + n, ipv4(1, 2, tcp((n * 977) % 65536, 80, number), 6))
            for n, number in enumerate(numbers)
        ]
    )


IS_IPV4 = call("eq", field("ipversion"), literal(4))


def disagreements(lfta: Lfta) -> list[tuple[Expression, object, object]]:
    expected, _ = run(interpreted(), [lfta], [traffic()])
    rows, _ = run(compiled(), [lfta], [traffic()])
    pairs = zip(answer(lfta, rows["lfta"]), answer(lfta, expected["lfta"]), strict=True)
    return [
        (column.expression, a, b)
        for mine, oracle in pairs
        for column, a, b in zip(lfta.columns, mine, oracle, strict=True)
        if a != b
    ]


@pytest.mark.parametrize("part", range(2))
def test_what_is_computed_of_an_overflow_is_that_of_the_wrapped_number(part: int) -> None:
    columns = [NamedExpression(f"c{n}", each) for n, each in enumerate(composed()[part::2])]
    assert disagreements(selection(columns, IS_IPV4)) == []


@pytest.mark.parametrize("name", ASSUMED)
def test_a_condition_over_an_overflow_chooses_the_same_packets(name: str) -> None:
    value = OVERFLOWING[name]
    number = call("ts_to_int", value) if value.type is TIMESTAMP else value
    condition = call("lt", call("mod_int", number, literal(100)), literal(10))
    keys = [epoch_of(), NamedExpression("part", call("shr", number, literal(56)))]
    partials = [
        count(),
        partial("total", PartialOp.SUM, number),
        partial("squares", PartialOp.SUM, call("mul_int", number, number)),
        partial("least", PartialOp.MIN, call("abs_int", number)),
        partial("most", PartialOp.MAX, call("add_int", number, SEQUENCE)),
    ]
    lfta = aggregation(keys, partials, call("and", IS_IPV4, condition))
    expected, _ = run(interpreted(), [lfta], [traffic()])
    rows, _ = run(compiled(), [lfta], [traffic()])
    assert answer(lfta, rows.get("lfta", [])) == answer(lfta, expected.get("lfta", []))


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name, entry in FUNCTIONS.items()
        if entry.is_lfta_safe
        and entry.result in (INT, TIMESTAMP, INTERVAL)
        and name not in CANNOT_OVERFLOW
    ),
)
def test_every_function_that_can_overflow_is_tried(name: str) -> None:
    assert name in OVERFLOWING
