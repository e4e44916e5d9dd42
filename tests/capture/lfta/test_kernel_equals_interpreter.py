"""Compiled and interpreted LFTAs give the same answer, however packets, beats and memory fall.

Compiled ones give the same rows in the same order, optimised or not, when one replaces the other,
and in parts side by side.

The tests search a little; ``pytest -m bench`` with this file searches ten times as long.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.capture.lfta.lfta_builders import (
    aggregation,
    count,
    field,
    flow,
    literal,
    partial,
    selection,
)
from tests.capture.lfta.lfta_collect import (
    answer,
    compiled,
    divided,
    interpreted,
    replaced,
    run,
)
from tests.capture.lfta.lfta_strategies import beats, blocks_of, lftas, nanoseconds, traffic

from gscope.capture.lfta.settings import LftaSettings
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import NamedExpression
from gscope.queries.expressions.schema import Schema
from gscope.queries.expressions.types import DECREASING, Direction, GsqlType, Ordering

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.capture.packet.kernel_reader import RawPacket

    from gscope.queries.plan.program import Lfta

SLOTS = st.sampled_from([4, 8, 64, 1 << 12])
SIZES = st.sampled_from([1, 3, 127, 128, 129, 1000])
PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def everything() -> Lfta:
    """All partial aggregates, over keys that may be NULL and epochs of a microsecond."""
    keys = [
        nanoseconds(1000),
        NamedExpression("vlan", field("vlan")),
        NamedExpression("net", call("prefix", field("srcIP"), literal(24), literal(48))),
        NamedExpression("low", call("bit_and", field("srcPort"), literal(3))),
    ]
    ratio = call(
        "div_float", call("int_to_float", field("len")), call("int_to_float", field("flags"))
    )
    partials = [
        count(),
        count("acks", field("ack_number")),
        *(
            partial(op.value, op, field("sequence_number"))
            for op in PartialOp
            if op is not PartialOp.COUNT
        ),
        partial("least_ip", PartialOp.MIN, field("destIP")),
        partial("greatest_ip", PartialOp.MAX, field("srcIP")),
        partial("ratio", PartialOp.MIN, ratio),
        partial("greatest_ratio", PartialOp.MAX, ratio),
        partial("until", PartialOp.MAX, field("timestamp")),
        partial("mac", PartialOp.MIN, field("srcMAC")),
        partial("big", PartialOp.OR, call("mul_int", field("len"), field("ttl"))),
    ]
    return aggregation(keys, partials, name="everything")


def stamps() -> Lfta:
    """Epochs of a nanosecond, keys of every other type."""
    keys = [
        NamedExpression("tb", field("timestamp")),
        NamedExpression(
            "half",
            call("div_float", call("int_to_float", field("ttl")), literal(-0.0, GsqlType.FLOAT)),
        ),
        NamedExpression("is_big", call("gt", field("len"), literal(60))),
        NamedExpression("mac", field("destMAC")),
        NamedExpression("diff", call("sub_int", field("srcPort"), field("destPort"))),
    ]
    return aggregation(keys, [count()], call("gt", field("len"), literal(20)), name="stamps")


def payloads() -> Lfta:
    """A selection with strings, of packets over 20 bytes."""
    columns = [
        NamedExpression("time", field("time")),
        NamedExpression("data", field("data")),
        NamedExpression("start", call("str_truncate", field("TCP_data"), literal(5))),
        NamedExpression(
            "is_get", call("str_match_start", field("data"), literal(b"GET", GsqlType.STRING))
        ),
        NamedExpression("source", field("srcIP")),
        NamedExpression("inner", field("inner.srcIP")),
        NamedExpression("flags", field("flags")),
    ]
    return selection(
        columns, call("gt", field("len"), literal(20)), name="payloads", temporal=("time",)
    )


def ordered() -> Lfta:
    """A selection with declared orders; some of what they are about can be NULL."""
    shrinking = call("decreasing", field("len"))
    sliding = call("banded", field("srcPort"), literal(300))
    columns = [
        NamedExpression("less", call("sub_int", shrinking, literal(5))),
        NamedExpression("pair", call("add_int", sliding, call("mul_int", sliding, literal(2)))),
        NamedExpression("ago", call("neg_int", field("time_ns"))),
    ]
    plan = selection(columns, call("gt", field("len"), literal(20)), name="ordered")
    orderings = (DECREASING, Ordering(Direction.INCREASING, 900), DECREASING)
    schema = Schema(
        tuple(
            replace(column, ordering=ordering)
            for column, ordering in zip(plan.schema.columns, orderings, strict=True)
        )
    )
    return replace(plan, schema=schema, declared=(shrinking, sliding))


FIXED = [flow(), everything(), stamps(), payloads(), ordered()]


def assert_agreement(
    queries: Sequence[Lfta],
    sent: list[RawPacket],
    clock: list[tuple[int, int]],
    size: int,
    small: LftaSettings,
) -> None:
    blocks = blocks_of(sent, size)
    expected, oracle = run(interpreted(groups=5), queries, blocks_of(sent, 10), clock)
    rows, engine = run(compiled(small), queries, blocks, clock)
    by_both, swapped = run(replaced(small), queries, blocks, clock)
    assert repr(by_both) == repr(rows)  # NaN equals itself there
    assert swapped.interface_counters == engine.interface_counters
    if len(queries) > 1:
        in_parts, parts = run(divided(small), queries, blocks, clock)
        assert repr(in_parts) == repr(rows)
        assert parts.interface_counters == engine.interface_counters
        assert parts.bound_ns == engine.bound_ns
        names = [lfta.name for lfta in queries]
        assert [*map(parts.lfta_counters, names)] == [*map(engine.lfta_counters, names)]
        # Streams keep the order of the program.
        assert [*parts.heartbeat(parts.bound_ns)] == names
    for lfta in queries:
        assert answer(lfta, rows[lfta.name]) == answer(lfta, expected[lfta.name])
        mine, theirs = engine.lfta_counters(lfta.name), oracle.lfta_counters(lfta.name)
        assert mine.matched_tuples == theirs.matched_tuples
        assert mine.out_tuples == len(rows[lfta.name])
        assert mine.out_of_order_tuples == theirs.out_of_order_tuples
        assert mine.live_groups == 0
    assert engine.interface_counters == oracle.interface_counters
    assert engine.interface_counters.packets == len(sent)


ANY_TRAFFIC = settings(max_examples=12, deadline=None, suppress_health_check=PATIENT)


@ANY_TRAFFIC
@given(st.data(), traffic(), SIZES, SLOTS, st.integers(0, 70))
def test_fixed_lftas_agree_on_any_traffic(
    data: st.DataObject, sent: list[RawPacket], size: int, slots: int, slow: int
) -> None:
    clock = data.draw(beats(sent))
    memory = LftaSettings(
        table_slots=slots, batch_rows=128, heap_bytes=100, slow_flush_buckets=slow
    )
    assert_agreement(FIXED, sent, clock, size, memory)


@pytest.mark.bench
@settings(ANY_TRAFFIC, max_examples=120)
@given(st.data(), traffic(), SIZES, SLOTS, st.integers(0, 70))
def test_fixed_lftas_agree_on_much_traffic(
    data: st.DataObject, sent: list[RawPacket], size: int, slots: int, slow: int
) -> None:
    clock = data.draw(beats(sent))
    memory = LftaSettings(
        table_slots=slots, batch_rows=128, heap_bytes=100, slow_flush_buckets=slow
    )
    assert_agreement(FIXED, sent, clock, size, memory)


# Derandomised, so that the kernels are found compiled the next time.
RANDOM_LFTAS = settings(
    max_examples=3, deadline=None, derandomize=True, suppress_health_check=PATIENT, database=None
)


@RANDOM_LFTAS
@given(st.data(), lftas("one"), traffic(), SIZES, SLOTS)
def test_random_lftas_agree(
    data: st.DataObject, one: Lfta, sent: list[RawPacket], size: int, slots: int
) -> None:
    memory = LftaSettings(table_slots=slots, batch_rows=128, heap_bytes=100)
    assert_agreement([one], sent, data.draw(beats(sent)), size, memory)


@pytest.mark.bench
@settings(RANDOM_LFTAS, max_examples=60)
@given(st.data(), lftas("one"), lftas("two"), traffic(), SIZES, SLOTS)
def test_many_random_lftas_agree(
    data: st.DataObject, one: Lfta, two: Lfta, sent: list[RawPacket], size: int, slots: int
) -> None:
    memory = LftaSettings(table_slots=slots, batch_rows=128, heap_bytes=100)
    assert_agreement([one, two], sent, data.draw(beats(sent)), size, memory)
