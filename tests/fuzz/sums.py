"""Sums close: a mutated packet is in one counter, and each LFTA counts or filters it once.

The expectation is a plain loop over what the dissector found; the engine is the compiled one, in
each of the three ways in which generated kernels sort a batch.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from tests.capture.lfta.lfta_builders import IS_IP, aggregation, count, epoch_of, field, selection
from tests.capture.lfta.lfta_collect import Collector
from tests.capture.lfta.lfta_strategies import blocks_of

from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.packet.decode_errors import Reason
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import NamedExpression

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.capture.packet.kernel_reader import RawPacket

    from gscope.capture.lfta.cache import CompiledKernel
    from gscope.capture.packet.dissector.dissect import Fields
    from gscope.queries.plan.program import Lfta

Dissected = tuple["Fields", Reason]

_SETTINGS = LftaSettings(table_slots=64, batch_rows=128, heap_bytes=4096)
"""Tables so small that groups collide."""


@cache
def _query_sets() -> tuple[tuple[tuple[Lfta, ...], CompiledKernel], ...]:
    """Return query sets that differ in how their kernels sort packets, with the kernels."""
    of_ip = aggregation(
        [epoch_of(), NamedExpression("p", field("protocol"))], [count()], IS_IP, name="ip"
    )
    others = aggregation(
        [epoch_of(), NamedExpression("e", field("ethertype"))],
        [count()],
        call("not", IS_IP),
        name="others",
    )
    each = selection([NamedExpression("v", field("ipversion"))], name="each")
    sets = ((of_ip,), (of_ip, others), (others, each))
    return tuple((lftas, load_kernel(lftas)) for lftas in sets)


def unaccounted(
    packets: Sequence[RawPacket], dissected: Sequence[Dissected], chance: random.Random
) -> str:
    """Return what is wrong with the counters after ``packets``, "" if every sum closes.

    In half of the calls some packets are late.
    """
    lftas, kernel = chance.choice(_query_sets())
    collector = Collector()
    engine = LftaRuntime(lftas, "main", _SETTINGS, kernel, collector)
    bound_ns = -(2**63)
    if chance.random() < 0.5:
        bound_ns = chance.choice(packets).time_ns
        collector.heartbeat(engine, bound_ns, 0)
    for block in blocks_of(list(packets), chance.choice((1, 7, len(packets)))):
        position = engine.process(block, 0)
        if position != block.count:
            return f"{position} of {block.count} packets of a block were taken"
    engine.finish()
    in_time = [
        each for packet, each in zip(packets, dissected, strict=True) if packet.time_ns >= bound_ns
    ]
    counters = engine.interface_counters
    counted = Counter({Reason.NONE: counters.accepted_packets, **counters.odd_packets})
    expected = Counter(reason for _, reason in in_time)
    if +counted != expected:
        return f"counted by reason {dict(+counted)}, dissected {dict(expected)}"
    if counters.late_packets != len(packets) - len(in_time):
        return f"{counters.late_packets} late packets, expected {len(packets) - len(in_time)}"
    if counters.packets != len(packets):
        return f"{counters.packets} of {len(packets)} packets are in a counter"
    of_ip = sum(fields["ipversion"] is not None for fields, _ in in_time)
    wanted = {"ip": of_ip, "others": len(in_time) - of_ip, "each": len(in_time)}
    for lfta in lftas:
        rows = collector.rows.get(lfta.name, [])
        found = sum(row["cnt"] for row in rows) if lfta.is_aggregation else len(rows)
        matched = engine.lfta_counters(lfta.name).matched_tuples
        if not found == matched == wanted[lfta.name]:
            expected_rows = wanted[lfta.name]
            return f"{lfta.name}: {found} in rows, {matched} matched, {expected_rows} expected"
    return ""
