"""Estimates with a rate for each epoch: right on average over seeds, exact where the rate is 1."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from statistics import fmean, stdev

import numpy as np
import pyarrow as pa
import pytest

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Column
from gscope.queries.plan.partitioning.row_hashes import row_hashes
from gscope.queries.plan.program import AggregationNode
from gscope.queries.plan.sampling.epoch_rates import with_epoch_rates
from gscope.queries.plan.sampling.keyed_hash import HashKey, threshold_of
from gscope.queries.plan.sampling.moving_samples import moving_samples

QUERIES = """
DEFINE { query_name flows; }
SELECT tb, srcPort, destPort, count(*) as c FROM TCP GROUP BY time/10 as tb, srcPort, destPort;
DEFINE { query_name totals; }
SELECT tb, count(*) as n, sum(c) as packets, sum(c) / count(*) as size FROM flows GROUP BY tb
"""
RATES = (0.1, 0.1, 0.3, 1.0, 0.05, 0.7)
"""The rates of the epochs 0, 1 …"""
FLOWS = 400
SEEDS = 250


def node_and_rates() -> AggregationNode:
    context = CompileContext(("a",), {}, samples=True)
    program = compile_queries([QueryText(QUERIES, "q")], context).program
    ((sample,), _) = moving_samples(program)
    changes = [(n + 1, a) for n, (a, b) in enumerate(pairwise(RATES)) if a != b]
    made = with_epoch_rates(program.node("totals"), sample.rates["totals"], changes, RATES[-1])
    assert isinstance(made, AggregationNode)
    return made


def test_estimates_are_right_on_average_in_each_epoch() -> None:
    random = Random(4)
    node = node_and_rates()
    columns = {each.name: each.expression for each in node.columns}
    flows = pa.table(
        {
            "srcPort": np.arange(FLOWS, dtype=np.int64),
            "destPort": np.full(FLOWS, 80, np.int64),
            "c": np.array([random.randint(1, 9) for _ in range(FLOWS)], np.int64),
        }
    )
    ports = [c for c in columns.values() if isinstance(c, Column)]
    terms = tuple(
        Column(name, ports[0].type, is_nullable=False) for name in ("srcPort", "destPort")
    )
    packets = flows["c"].to_numpy()
    truth = {"n": FLOWS, "packets": int(packets.sum())}
    found: dict[tuple[int, str], list[int]] = {}
    for seed in range(SEEDS):
        hashed = row_hashes(flows, terms, HashKey.of_seed(seed))
        for epoch, rate in enumerate(RATES):
            kept = hashed <= np.uint64(threshold_of(rate))
            values = {node.epoch: epoch}
            for aggregate in node.aggregates:
                is_sum = aggregate.function == "sum"
                values[aggregate.name] = int(packets[kept].sum()) if is_sum else int(kept.sum())
            for name in truth:
                value = evaluate(columns[name], lambda leaf: values[leaf.name])  # noqa: B023
                assert isinstance(value, int)
                found.setdefault((epoch, name), []).append(value)
    for (epoch, name), estimates in found.items():
        if RATES[epoch] == 1:
            assert set(estimates) == {truth[name]}
            continue
        error = stdev(estimates) / math.sqrt(SEEDS)
        assert 0 < error < truth[name] / 10
        assert abs(fmean(estimates) - truth[name]) < 4 * error, (epoch, name)


@pytest.mark.parametrize(("epoch", "expected"), [(1, 2**63 - 1), (3, 2**62 + 1), (5, None)])
def test_at_the_rate_1_a_count_is_that_of_all_packets_to_the_last_digit(
    epoch: int, expected: int | None
) -> None:
    node = node_and_rates()
    (counted,) = (each.expression for each in node.columns if each.name == "n")
    values = {node.epoch: epoch, **{each.name: 2**62 + 1 for each in node.aggregates}}
    value = evaluate(counted, lambda leaf: values[leaf.name])
    assert value == expected or (expected is None and value != 2**62 + 1)
