"""Sampled LFTAs keep what the documented hash keeps, and count the rest.

They do so compiled or interpreted.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.lfta.lfta_builders import aggregation as aggregation_of
from tests.capture.lfta.lfta_builders import count, epoch_of, field, flow, literal, partial
from tests.capture.lfta.lfta_collect import Collector, answer, merged, run
from tests.capture.lfta.lfta_strategies import START_NS, beats, blocks_of, lftas, traffic
from tests.capture.lfta.test_kernel_equals_interpreter import (
    ANY_TRAFFIC,
    RANDOM_LFTAS,
    SIZES,
    SLOTS,
    everything,
    ordered,
    payloads,
    stamps,
)

from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.codegen.generate import generate
from gscope.capture.lfta.interpreter import LftaInterpreter
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.shedding.thresholds import InitialSampling
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import NamedExpression
from gscope.queries.plan.program_sampling import LeafSampling, SamplingMethod
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, HashKey, threshold_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.capture.lfta.lfta_collect import Make, Row
    from tests.capture.packet.kernel_reader import RawPacket

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta

KEY = HashKey.of_seed(20070401)
ADDRESSES = (field("srcIP"), field("destIP"), field("srcPort"), field("destPort"))


def by_groups(lfta: Lfta, *terms: Expression) -> Lfta:
    return replace(lfta, sampling=LeafSampling(SamplingMethod.GROUPS, terms))


def by_tuples(lfta: Lfta) -> Lfta:
    return replace(lfta, sampling=LeafSampling(SamplingMethod.TUPLES, ()))


def of_rate(rate: float, queries: Sequence[Lfta]) -> InitialSampling:
    return InitialSampling(KEY, {lfta.name: threshold_of(rate) for lfta in queries})


def compiled(memory: LftaSettings, sampling: InitialSampling | None) -> Make:
    def make(queries: Sequence[Lfta], emit: Collector) -> LftaRuntime:
        return LftaRuntime(queries, "main", memory, load_kernel(queries), emit, sampling=sampling)

    return make


def interpreted(sampling: InitialSampling | None) -> Make:
    def make(queries: Sequence[Lfta], emit: Collector) -> LftaInterpreter:
        return LftaInterpreter(queries, "main", emit, 5, sampling=sampling)

    return make


MIXED = [
    by_groups(flow(), *ADDRESSES),
    by_groups(
        everything(), call("prefix", field("srcIP"), literal(24), literal(48)), field("vlan")
    ),
    by_tuples(stamps()),
    by_groups(
        payloads(), call("gt", field("len"), literal(60)), field("srcMAC"), field("timestamp")
    ),
    ordered(),
]
"""Every method and type of term, in one kernel with an LFTA that keeps all packets."""

ALONE = [by_groups(flow(), *ADDRESSES)]
PAIR = [by_groups(flow(), field("srcIP")), by_tuples(everything())]
"""Sets whose LFTAs decode plain packets themselves."""


def assert_agreement(
    queries: Sequence[Lfta],
    sent: list[RawPacket],
    clock: list[tuple[int, int]],
    size: int,
    memory: LftaSettings,
    rate: float,
) -> None:
    sampling = of_rate(rate, queries)
    expected, oracle = run(interpreted(sampling), queries, blocks_of(sent, 10), clock)
    rows, engine = run(compiled(memory, sampling), queries, blocks_of(sent, size), clock)
    for lfta in queries:
        assert answer(lfta, rows[lfta.name]) == answer(lfta, expected[lfta.name])
        mine, theirs = engine.lfta_counters(lfta.name), oracle.lfta_counters(lfta.name)
        assert mine.matched_tuples == theirs.matched_tuples
        assert mine.out_of_order_tuples == theirs.out_of_order_tuples
    assert engine.interface_counters == oracle.interface_counters
    assert engine.interface_counters.packets == len(sent)


RATES = st.sampled_from([1.0, 0.7, 0.5, 0.1, 1e-9])


@ANY_TRAFFIC
@given(st.data(), traffic(), SIZES, SLOTS, RATES, st.sampled_from([MIXED, ALONE, PAIR]))
def test_kernels_and_interpreter_keep_the_same_packets(
    data: st.DataObject,
    sent: list[RawPacket],
    size: int,
    slots: int,
    rate: float,
    queries: list[Lfta],
) -> None:
    memory = LftaSettings(table_slots=slots, batch_rows=128, heap_bytes=100)
    assert_agreement(queries, sent, data.draw(beats(sent)), size, memory, rate)


@pytest.mark.bench
@settings(RANDOM_LFTAS, max_examples=60)
@given(st.data(), lftas("one"), lftas("two"), traffic(), SIZES, RATES)
def test_random_lftas_keep_the_same_packets(
    data: st.DataObject, one: Lfta, two: Lfta, sent: list[RawPacket], size: int, rate: float
) -> None:
    queries = [by_groups(one, field("srcIP"), field("destPort")), by_tuples(two)]
    memory = LftaSettings(table_slots=8, batch_rows=128, heap_bytes=100)
    assert_agreement(queries, sent, data.draw(beats(sent)), size, memory, rate)


def documented_hash(row: Row, key: HashKey = KEY) -> int:
    """The hash of a row of ``flow``, written down again from its documentation."""

    def finish(word: int) -> int:
        word = (word ^ word >> 32) * key.second % 2**64
        return word ^ word >> 29

    result = key.start
    for name in ("srcIP", "destIP", "srcPort", "destPort"):
        value = row[name]
        if value is None:
            word = 0x5DEECE66D1CE4E5B
        elif name.endswith("IP"):
            high, low = (int.from_bytes(value[at : at + 8], "big") for at in (0, 8))
            word = low ^ finish((high ^ key.address) * key.first % 2**64)
        else:
            word = value
        result = (result ^ word) * key.first % 2**64
    return finish(result)


@ANY_TRAFFIC
@given(traffic(), SLOTS, RATES, st.integers(0, 2**64 - 1))
def test_sampled_answers_are_the_full_answer_filtered_by_the_hash(
    sent: list[RawPacket], slots: int, rate: float, seed: int
) -> None:
    key = HashKey.of_seed(seed)
    memory = LftaSettings(table_slots=slots, batch_rows=128)
    full, _ = run(compiled(memory, None), [flow()], blocks_of(sent, 100))
    sampling = InitialSampling(key, {"flow": threshold_of(rate)})
    rows, _ = run(compiled(memory, sampling), ALONE, blocks_of(sent, 100))
    kept = [row for row in full["flow"] if documented_hash(row, key) < rate * 2**64]
    assert merged(flow(), rows["flow"]) == merged(flow(), kept)


def test_the_full_rate_is_identical_to_no_sampling() -> None:
    sent = many(4000)
    memory = LftaSettings(table_slots=64, batch_rows=256)
    plain = [replace(lfta, sampling=None) for lfta in MIXED]
    full, without = run(compiled(memory, None), plain, blocks_of(sent, 500))
    rows, engine = run(compiled(memory, of_rate(1.0, MIXED)), MIXED, blocks_of(sent, 500))
    assert rows == full
    assert engine.interface_counters == without.interface_counters
    for lfta in MIXED:
        assert engine.lfta_counters(lfta.name) == without.lfta_counters(lfta.name)


def test_lftas_that_keep_all_packets_have_the_kernel_of_a_run_without_sampling() -> None:
    plain = [flow(), everything()]
    assert "sampling" not in generate(plain).source
    assert load_kernel(plain).path != load_kernel(PAIR).path


def test_a_change_of_rate_or_seed_needs_no_other_kernel() -> None:
    sources = {generate(PAIR).source for _ in range(2)}
    assert len(sources) == 1
    assert str(KEY.first) not in sources.pop()


def many(packets: int, sources: int = 500) -> list[RawPacket]:
    """TCP packets of some flows, in random order."""
    from tests.capture.lfta.lfta_builders import ipv4, tcp
    from tests.capture.packet.kernel_reader import RawPacket

    chance = random.Random(5)
    made = []
    for n in range(packets):
        flow_number = chance.randrange(sources)
        data = ipv4(0x0A000000 + flow_number, 0xC0A80001, tcp(1024 + flow_number, 80, n, 16), 6)
        made.append(RawPacket(1, data, len(data), START_NS + n * 10**6))
    return made


def test_packets_that_no_lfta_takes_are_shed() -> None:
    sent = many(5000)
    rows, engine = run(compiled(LftaSettings(), of_rate(0.25, ALONE)), ALONE, blocks_of(sent, 1000))
    kept = sum(row["cnt"] for row in rows["flow"])
    counters = engine.interface_counters
    assert (counters.accepted_packets, counters.shed_packets) == (kept, 5000 - kept)
    groups = len({row["srcIP"] for row in rows["flow"]})
    # 500 groups, each kept with probability 1/4: a standard deviation is 9.7 groups.
    assert abs(groups - 125) < 40


def test_a_packet_that_another_lfta_takes_is_not_shed() -> None:
    sent = many(1000)
    ports = aggregation_of([epoch_of()], [count()], name="ports")
    queries = [by_groups(flow(), *ADDRESSES), ports]
    _, engine = run(compiled(LftaSettings(), of_rate(0.1, queries)), queries, blocks_of(sent, 300))
    assert engine.interface_counters.shed_packets == 0
    assert engine.interface_counters.accepted_packets == 1000
    assert engine.lfta_counters("ports").matched_tuples == 1000
    assert engine.lfta_counters("flow").matched_tuples < 300


def test_a_packet_that_no_lfta_wants_is_accepted() -> None:
    sent = many(1000)
    nothing = call("lt", field("len"), literal(0))
    queries = [by_groups(replace(flow(), predicate=nothing), *ADDRESSES)]
    _, engine = run(compiled(LftaSettings(), of_rate(0.1, queries)), queries, blocks_of(sent, 300))
    assert engine.interface_counters.shed_packets == 0
    assert engine.interface_counters.accepted_packets == 1000


def test_samples_of_falling_thresholds_are_nested() -> None:
    sent = many(6000)
    blocks = blocks_of(sent, 500)
    collector = Collector()
    engine = LftaRuntime(
        ALONE, "main", LftaSettings(), load_kernel(ALONE), collector, sampling=of_rate(0.8, ALONE)
    )
    for n, block in enumerate(blocks):
        if n == 4:
            engine.set_threshold("flow", threshold_of(0.3))
        engine.process(block, 0)
    engine.finish()
    full, _ = run(compiled(LftaSettings(), None), [flow()], blocks)
    low = threshold_of(0.3)
    # What the least threshold keeps is exact, although it was not in force from the beginning.
    expected = merged(flow(), [row for row in full["flow"] if documented_hash(row) <= low])
    rows = [row for row in collector.rows["flow"] if documented_hash(row) <= low]
    assert merged(flow(), rows) == expected
    assert len(rows) < len(collector.rows["flow"])


def test_tuples_are_kept_at_the_rate_whatever_the_lane() -> None:
    sent = many(20_000)
    queries = [by_tuples(flow())]
    kept = []
    for lane in (0, 1):
        collector = Collector()
        engine = LftaRuntime(
            queries,
            "main",
            LftaSettings(),
            load_kernel(queries),
            collector,
            sampling=of_rate(0.2, queries),
        )
        engine.begin_lane(lane)
        for block in blocks_of(sent, 1000):
            engine.process(block, 0)
        engine.finish()
        kept.append(merged(flow(), collector.rows["flow"]))
        # A standard deviation of the number of packets kept is 57.
        assert abs(engine.interface_counters.accepted_packets - 4000) < 5 * 57
    assert kept[0] != kept[1]


def test_the_seed_decides_which_groups_are_kept() -> None:
    sent = many(3000)
    kept = []
    for seed in (1, 2):
        sampling = InitialSampling(HashKey.of_seed(seed), {"flow": threshold_of(0.5)})
        rows, _ = run(compiled(LftaSettings(), sampling), ALONE, blocks_of(sent, 1000))
        kept.append({row["srcIP"] for row in rows["flow"]})
    assert kept[0] != kept[1]
    both = len(kept[0] & kept[1])
    # Independent halves of 500 groups: 125 in both, with a standard deviation of 9.7.
    assert abs(both - 125) < 50


def test_sums_of_a_sample_are_those_of_its_groups() -> None:
    """Any aggregate of a group that is kept is exact, not only a count."""
    lfta = aggregation_of(
        [epoch_of(), NamedExpression("srcIP", field("srcIP"))],
        [partial(op.value, op, field("sequence_number")) for op in (PartialOp.MAX, PartialOp.XOR)],
        name="most",
    )
    sent = many(3000)
    full, _ = run(compiled(LftaSettings(), None), [lfta], blocks_of(sent, 1000))
    sampled = [by_groups(lfta, field("srcIP"))]
    rows, _ = run(compiled(LftaSettings(), of_rate(0.3, sampled)), sampled, blocks_of(sent, 1000))
    everything_kept = merged(lfta, full["most"])
    kept = merged(lfta, rows["most"])
    assert 0 < len(kept) < len(everything_kept)
    assert kept.items() <= everything_kept.items()


def test_an_lfta_without_a_threshold_keeps_all_packets() -> None:
    sent = many(1000)
    sampling = InitialSampling(KEY, {})
    assert sampling.threshold("flow") == FULL_THRESHOLD
    _, engine = run(compiled(LftaSettings(), sampling), ALONE, blocks_of(sent, 300))
    assert engine.lfta_counters("flow").matched_tuples == 1000
