"""Rows state the rate at which their packets were sampled, also where groups span a change."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.capture.lfta.lfta_builders import flow
from tests.capture.lfta.lfta_collect import Collector
from tests.capture.lfta.lfta_strategies import blocks_of
from tests.capture.lfta.test_kernel_equals_interpreter import payloads
from tests.capture.lfta.test_sampled_kernels import (
    KEY,
    by_tuples,
    compiled,
    interpreted,
    many,
    of_rate,
)

from gscope.capture.lfta.codegen.generate import generate
from gscope.capture.lfta.settings import LftaSettings
from gscope.queries.plan.program_sampling import RATE_COLUMN
from gscope.queries.plan.sampling.keyed_hash import hash_packet, threshold_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.capture.lfta.lfta_collect import Make

    from gscope.queries.plan.program import Lfta

RATES = (1.0, 0.5, 0.25, 0.7)
BLOCK = 90


def stating(lfta: Lfta) -> Lfta:
    return replace(by_tuples(lfta), has_rate_column=True)


def moved(make: Make, queries: Sequence[Lfta], seed: int) -> tuple[Collector, list[float]]:
    """The rows of packets whose rate changes at random blocks, and the rate of each packet."""
    random, collector, rates = Random(seed), Collector(), []
    engine = make(queries, collector)
    for number, block in enumerate(blocks_of(many(1500), BLOCK)):
        rate = 1.0 if number < 2 else random.choice(RATES)
        for lfta in queries:
            engine.set_threshold(lfta.name, threshold_of(rate))
        assert engine.process(block, 0) == block.count
        rates += [rate] * block.count
        if number == 7:
            collector.heartbeat(engine, int(block.time_ns[-1]), 10**9)
    engine.finish()
    return collector, rates


@pytest.mark.parametrize(
    "make",
    [
        compiled(LftaSettings(table_slots=8, batch_rows=128), of_rate(1.0, [flow()])),
        compiled(LftaSettings(batch_rows=128), of_rate(1.0, [flow()])),
        interpreted(of_rate(1.0, [flow()])),
    ],
    ids=["few slots", "compiled", "interpreted"],
)
def test_no_row_has_packets_of_two_rates(make: Make) -> None:
    collector, rates = moved(make, [stating(flow())], seed=3)
    start = KEY.of_interface("main")
    expected = Counter(
        rate
        for number, rate in enumerate(rates)
        if hash_packet(number, start, KEY) <= threshold_of(rate)
    )
    found: Counter[float] = Counter()
    for row in collector.rows["flow"]:
        found[row[RATE_COLUMN]] += row["cnt"]
    assert found == expected
    assert set(found) == set(RATES)


def test_rows_that_are_shipped_one_by_one_state_it_too() -> None:
    name = payloads().name
    makes = (
        compiled(LftaSettings(batch_rows=128), of_rate(1.0, [payloads()])),
        interpreted(of_rate(1.0, [payloads()])),
    )
    (one, rates), (other, _) = (moved(make, [stating(payloads())], seed=5) for make in makes)
    assert one.rows[name] == other.rows[name]
    assert Counter(row[RATE_COLUMN] for row in one.rows[name]).keys() == set(rates)


def test_the_kernel_is_that_of_an_lfta_that_does_not_state_it() -> None:
    assert generate([stating(flow())]) == generate([by_tuples(flow())])
