"""Sums close: a mutated packet is in one counter, and each LFTA counts or filters it once.

The expectation is a plain loop over what the dissector found; the engine is the compiled one, in
each of the three ways in which generated kernels sort a batch.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from tests.capture.lfta.lfta_builders import IS_IP, aggregation, count, epoch_of, field, selection
from tests.capture.lfta.lfta_collect import Collector
from tests.capture.lfta.lfta_strategies import blocks_of

from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.shedding.thresholds import InitialSampling
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import NamedExpression
from gscope.queries.plan.program_sampling import LeafSampling, SamplingMethod
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_packet, hash_terms, threshold_of

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.capture.packet.kernel_reader import RawPacket

    from gscope.capture.lfta.cache import CompiledKernel
    from gscope.capture.packet.dissector.dissect import Fields
    from gscope.queries.plan.program import Lfta

Dissected = tuple["Fields", Reason]

_TERMS = (field("srcIP"), field("srcPort"), field("vlan"))
_SAMPLING = InitialSampling(
    HashKey.of_seed(8), {"ip": threshold_of(0.4), "others": threshold_of(0.6)}
)
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
    sets: list[tuple[Lfta, ...]] = [(of_ip,), (of_ip, others), (others, each)]
    # The same again, with LFTAs that sample beside one that does not.
    groups = replace(of_ip, sampling=LeafSampling(SamplingMethod.GROUPS, _TERMS))
    tuples = replace(others, sampling=LeafSampling(SamplingMethod.TUPLES, ()))
    sets += [(groups,), (groups, tuples), (groups, tuples, each)]
    return tuple((lftas, load_kernel(lftas)) for lftas in sets)


def unaccounted(
    packets: Sequence[RawPacket], dissected: Sequence[Dissected], chance: random.Random
) -> str:
    """Return what is wrong with the counters after ``packets``, "" if every sum closes.

    In half of the calls some packets are late.
    """
    lftas, kernel = chance.choice(_query_sets())
    collector = Collector()
    engine = LftaRuntime(lftas, "main", _SETTINGS, kernel, collector, sampling=_SAMPLING)
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
        (number, *each)
        for number, (packet, each) in enumerate(zip(packets, dissected, strict=True))
        if packet.time_ns >= bound_ns
    ]
    counters = engine.interface_counters
    wanted: Counter[str] = Counter()
    expected = Counter(reason for _, _, reason in in_time)
    shed = 0
    for number, fields, reason in in_time:
        wanting = [lfta for lfta in lftas if _wants(lfta, fields)]
        taking = [lfta for lfta in wanting if _keeps(lfta, fields, number)]
        wanted.update(lfta.name for lfta in taking)
        shed += bool(wanting) and not taking and reason is Reason.NONE
    counted = Counter({Reason.NONE: counters.accepted_packets + shed, **counters.odd_packets})
    if +counted != expected:
        return f"counted by reason {dict(+counted)}, dissected {dict(expected)}"
    if counters.shed_packets != shed:
        return f"{counters.shed_packets} shed packets, expected {shed}"
    if counters.late_packets != len(packets) - len(in_time):
        return f"{counters.late_packets} late packets, expected {len(packets) - len(in_time)}"
    if counters.packets != len(packets):
        return f"{counters.packets} of {len(packets)} packets are in a counter"
    for lfta in lftas:
        rows = collector.rows.get(lfta.name, [])
        found = sum(row["cnt"] for row in rows) if lfta.is_aggregation else len(rows)
        matched = engine.lfta_counters(lfta.name).matched_tuples
        if not found == matched == wanted[lfta.name]:
            expected_rows = wanted[lfta.name]
            return f"{lfta.name}: {found} in rows, {matched} matched, {expected_rows} expected"
    return ""


def _wants(lfta: Lfta, fields: Fields) -> bool:
    return lfta.name == "each" or (lfta.name == "ip") is (fields["ipversion"] is not None)


def _keeps(lfta: Lfta, fields: Fields, number: int) -> bool:
    """Whether a packet is in the sample of an LFTA, by the hash of the fields dissected."""
    if lfta.sampling is None:
        return True
    key = _SAMPLING.key
    if lfta.sampling.method is SamplingMethod.TUPLES:
        hashed = hash_packet(number, key.of_interface("main"), key)
    else:
        values = [fields[term.name] for term in _TERMS]
        hashed = hash_terms(values, [term.type for term in _TERMS], key)
    return hashed <= _SAMPLING.threshold(lfta.name)
