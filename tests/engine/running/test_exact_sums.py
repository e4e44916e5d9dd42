"""Sums over epochs are exact until they are answered, wherever the fold is cut, by a plain loop."""

from __future__ import annotations

import math
from collections import defaultdict

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.engine.running.fold import Epochs, fold
from gscope.engine.running.reduce import part_of, reduce_epochs
from gscope.engine.spark.sql import running
from gscope.engine.storage.counts import Counts
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import RunningNode

WINDOW = 3
QUERY = (
    "SELECT tb, srcPort, sum(time_ns) as s, running_sum(time_ns) as r,"
    f" moving_sum(time_ns, {WINDOW}) as m FROM TCP GROUP BY time/10 as tb, srcPort"
    " CLOSING_WHEN count(*) = 99"
)
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
VALUES = st.sampled_from([LEAST, GREATEST, -1, 0, 1, 1 << 62, -(1 << 62), (1 << 32) - 1])
TUPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 2), VALUES), min_size=1, max_size=30)

Answers = dict[tuple[int, int], tuple[int | None, int | None, int | None]]


def node_of(text: str = QUERY) -> RunningNode:
    (node,) = compile_queries([QueryText(text, "q")], CompileContext(("a",))).program.nodes
    assert isinstance(node, RunningNode)
    return node


NODE = node_of()


def wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def by_a_loop(tuples: list[tuple[int, int, int]], last: int) -> tuple[Answers, int]:
    """Return the answers, and the number of them beyond 64 bits."""
    values: dict[tuple[int, int], list[int]] = defaultdict(list)
    for epoch, port, value in tuples:
        values[epoch, port].append(value)
    answers: Answers = {}
    outside = 0
    for port in {port for _, port, _ in tuples}:
        first = min(epoch for epoch, each, _ in tuples if each == port)
        for epoch in range(first, last + 1):
            spans = [range(epoch, epoch + 1), range(first, epoch + 1)]
            spans.append(range(max(first, epoch - WINDOW + 1), epoch + 1))
            held = [[v for e in span for v in values.get((e, port), ())] for span in spans]
            sums = [sum(each) if each else None for each in held]
            outside += sum(each is not None and each != wrapped(each) for each in sums)
            one, two, three = (None if each is None else wrapped(each) for each in sums)
            answers[epoch, port] = (one, two, three)
    return answers, outside


def partial_tuples(tuples: list[tuple[int, int, int]]) -> pa.Table:
    """Return the tuples of an LFTA that evicts a group after each packet."""
    low = [value & 0xFFFFFFFF for *_, value in tuples]
    high = [value >> 32 for *_, value in tuples]
    columns = {
        "tb": pa.array([epoch for epoch, *_ in tuples], pa.int64()),
        "srcPort": pa.array([port for _, port, _ in tuples], pa.int64()),
    }
    # count(*) of CLOSING_WHEN, and the halves, which sum, running_sum and moving_sum share
    names = {name for aggregate in NODE.aggregates for name in aggregate.partials}
    assert len(names) == 3
    for name in names:
        columns[name] = pa.array([1] * len(tuples), pa.int64())
    summed = next(each for each in NODE.aggregates if each.function == "sum" and each.can_wrap)
    for name, half in zip(summed.partials, (low, high), strict=True):
        columns[name] = pa.array(half, pa.int64())
    return pa.table(columns)


@settings(max_examples=60, deadline=None)
@given(tuples=TUPLES, cuts=st.sets(st.integers(1, 5), max_size=3))
def test_sums_over_epochs_are_those_of_a_loop(
    tuples: list[tuple[int, int, int]], cuts: set[int]
) -> None:
    # A cut is a punctuation: the clock has reached it.
    last = max([epoch for epoch, *_ in tuples] + [*cuts])
    expected, outside = by_a_loop(tuples, last)
    counts = Counts()
    answered: list[pa.Table] = []
    state: pa.Table | None = None
    low: float = -math.inf
    for high in [*sorted(cuts), math.inf]:
        released = [each for each in tuples if low <= each[0] < high]
        rows = reduce_epochs(NODE, partial_tuples(released), running.TASKS, counts)
        state, _ = fold(NODE, rows, state, Epochs(low, high, last), answered.append, counts)
        file = pa.BufferOutputStream()
        pq.write_table(state, file)
        state, low = pq.read_table(pa.BufferReader(file.getvalue())), high
    got = pa.concat_tables(answered).to_pylist()
    assert {(r["tb"], r["srcPort"]): (r["s"], r["r"], r["m"]) for r in got} == expected
    assert counts.wrapped_sums == ({NODE.query: outside} if outside else {})


@settings(max_examples=30, deadline=None)
@given(tuples=TUPLES)
def test_each_group_counts_in_one_task(tuples: list[tuple[int, int, int]]) -> None:
    whole, parts = Counts(), Counts()
    table = partial_tuples(tuples)
    reduce_epochs(NODE, table, running.TASKS, whole)
    for task in range(running.TASKS):
        part = part_of(NODE, table, running.TASKS, task)
        reduce_epochs(NODE, part, running.TASKS, parts)
    assert parts == whole


def test_a_sum_that_comes_back_into_range_is_right_again() -> None:
    tuples = [(0, 1, GREATEST), (1, 1, GREATEST), (2, 1, LEAST), (3, 1, LEAST)]
    counts = Counts()
    answered: list[pa.Table] = []
    rows = reduce_epochs(NODE, partial_tuples(tuples), running.TASKS)
    fold(NODE, rows, None, Epochs(-math.inf, math.inf, 3), answered.append, counts)
    (table,) = answered
    assert table["r"].to_pylist() == [GREATEST, -2, GREATEST - 1, -2]
    # of running sums the second one, of moving sums also the last, which is below
    assert counts.wrapped_sums == {NODE.query: 3}
