"""Rows of several results on one output: one order, whatever the portions and their timing."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.cli.delivery.interleaving import Interleaving
from gscope.cli.delivery.order_column import OrderColumn
from gscope.cli.delivery.rounds import NEVER, Rounds
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUERIES = """
Query packets: SELECT time, srcPort FROM a.TCP;
Query sevens: SELECT tb, srcPort, count(*) FROM TCP GROUP BY time/7 as tb, srcPort;
Query later: SELECT a.time, b.srcPort FROM a.TCP a JOIN b.TCP b
  ON b.time BETWEEN a.time AND a.time + 5 AND a.srcPort = b.srcPort;
Query before: SELECT 0 - time as back, srcPort FROM TCP WHERE pow(len, 2) > 9;
Query ports: SELECT srcPort, count(*) FROM TCP GROUP BY srcPort
"""
PROGRAM = compile_queries([QueryText(QUERIES, "q")], CompileContext(("a", "b"))).program
ROUNDS = Rounds(PROGRAM)
COLUMNS = {
    "packets": OrderColumn("time"),
    "sevens": OrderColumn("tb"),
    "later": OrderColumn("time"),
    "before": OrderColumn("-back"),
    "ports": None,
}
COMPLETE: dict[str, Callable[[int], float]] = {
    "packets": lambda time: time + 1,
    "sevens": lambda tb: 7 * tb + 7,
    "later": lambda time: time + 6,
    "before": lambda back: back + 1,
    "ports": lambda _: math.inf,
}
"""For each result the second in which a row is complete, by its promised value."""

Row = tuple[int, int]


@pytest.mark.parametrize("query", ["packets", "sevens", "later", "before"])
def test_a_row_is_in_the_round_that_completes_it(query: str) -> None:
    column = COLUMNS[query]
    assert column is not None
    values = [0, 1, 6, 7, 8, 40, 41, 250_000_000, 5, 3]
    if query == "before":
        values = [value for value in values if value]
    for value in values:
        assert ROUNDS.of(query, column.promised, value) == COMPLETE[query](value)
    assert ROUNDS.of(query, column.promised, math.inf) == NEVER


def test_time_completes_no_row_of_a_whole_input() -> None:
    assert not ROUNDS.is_timed("ports", "srcPort")
    assert ROUNDS.is_timed("sevens", "tb")


def table(query: str, rows: list[Row]) -> pa.Table:
    column = COLUMNS[query]
    sign = -1 if column is not None and column.falls else 1
    name = "n" if column is None else column.name
    values = [sign * value for value, _ in rows]
    return pa.table({name: pa.array(values, pa.int64()), "v": pa.array([v for _, v in rows])})


def rows_of(query: str, found: pa.Table) -> Iterator[tuple[str, int, int]]:
    sign = -1 if query == "before" else 1
    for value, number in zip(*found.to_pydict().values(), strict=True):
        yield query, sign * value, number


ROWS = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 3)), max_size=12)


@given(
    given_rows=st.fixed_dictionaries(dict.fromkeys(COLUMNS, ROWS)),
    seed=st.integers(0, 1 << 20),
)
def test_portions_and_timing_do_not_show(given_rows: dict[str, list[Row]], seed: int) -> None:
    """Streams and the job each go on at a pace of their own; some rows come before they must."""
    chance = random.Random(seed)
    rows = {query: sorted(each) for query, each in given_rows.items()}
    queue = Interleaving(COLUMNS, ROUNDS)
    found: list[tuple[str, int, int]] = []
    clocks = {"stream": 0, "job": 0}
    left = {query: list(each) for query, each in rows.items()}
    while min(clocks.values()) < 100:
        who = chance.choice(sorted(clocks))
        clocks[who] = clock = clocks[who] + chance.randint(0, 30)
        for query in COLUMNS:
            if (query == "packets") != (who == "stream"):
                continue
            column = COLUMNS[query]
            is_over = clock >= 100
            bound = math.inf if is_over else -math.inf
            if column is not None and not is_over:
                bound = ROUNDS.bound(query, column.promised, clock)
            ready = [row for row in left[query] if row[0] < bound]
            left[query] = left[query][len(ready) :]
            size = chance.randint(1, 5)
            queue.add(
                query,
                [table(query, ready[n : n + size]) for n in range(0, len(ready), size)],
            )
            queue.raise_bound(query, bound)
        for query, each in queue.due():
            found += rows_of(query, each)
        complete = min(clocks.values())
        came = {query for query, *_ in found}
        if complete < 100:
            # The first of the results waits for no other of its round.
            due = [row for row in rows["packets"] if COMPLETE["packets"](row[0]) <= complete]
            assert [(v, n) for query, v, n in found if query == "packets"][: len(due)] == due
            assert "ports" not in came
    places = list(COLUMNS)
    everything = [(query, *row) for query, each in rows.items() for row in each]
    assert found == sorted(
        everything, key=lambda row: (COMPLETE[row[0]](row[1]), places.index(row[0]), row[1:])
    )
    assert all(queue.is_delivered(query) for query in COLUMNS)


def test_time_completes_no_row_of_a_declared_order() -> None:
    text = (
        "Query q: SELECT increasing(id) as n, srcIP FROM a.IPV4; Query p: SELECT time FROM a.IPV4"
    )
    context = CompileContext(("a",), is_repeatable=True, is_interleaved=True)
    rounds = Rounds(compile_queries([QueryText(text, "q")], context).program)
    assert not rounds.is_timed("q", "n")
    assert rounds.is_timed("p", "time")
