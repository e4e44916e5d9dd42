"""Answers of streams and of steps on one output.

One order, and none waits for the other for ever.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.cli.delivery.checkpoint import StreamPosition
from gscope.cli.delivery.delivery import Delivery
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.process_events import CommittedOutput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUERIES = """
Query packets: SELECT time, srcPort FROM a.TCP;
Query instants: SELECT timestamp, srcPort FROM a.TCP WHERE SYN = 1;
Query counts: SELECT time, count(*) as packets FROM TCP GROUP BY time;
Query sevens: SELECT count(*) as packets FROM TCP GROUP BY time/7 as tb
"""
PROGRAM = compile_queries(
    [QueryText(QUERIES, "q")],
    CompileContext(("a", "b"), is_repeatable=True, is_interleaved=True),
).program
SECOND = 10**9
UNITS = {"packets": SECOND, "instants": 1, "counts": SECOND, "sevens": 7 * SECOND}
STREAMS = {"packets": "packets@a", "instants": "instants@a"}
END = 60 * SECOND


class Lines:
    """A sink that keeps the rows in the order in which they come."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int]] = []

    def begin(self, query: str, schema: pa.Schema) -> None: ...

    def write(self, query: str, table: pa.Table) -> None:
        self.rows += [(query, number) for number in table.columns[-1].to_pylist()]

    def settle(self, *, is_last: bool) -> dict[str, Any] | None:
        return None

    def publish(self) -> None: ...

    def close(self, *, is_complete: bool) -> None: ...


class FromMemory(Delivery):
    """Reads outputs that are tables already."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.tables: dict[str, list[pa.Table]] = {}

    def _read(self, output: CommittedOutput) -> Iterator[pa.Table]:
        yield from self.tables[output.path]


def table(query: str, rows: list[tuple[int, int]]) -> pa.Table:
    schema = PROGRAM.schema(query)
    values = [[time // UNITS[query] for time, _ in rows], [number for _, number in rows]]
    columns = dict(zip(schema.names, values, strict=True))
    return pa.table({name: pa.array(each, pa.int64()) for name, each in columns.items()})


TIMES = st.lists(st.integers(0, END - 1), max_size=10)


@settings(max_examples=25)
@given(given_times=st.fixed_dictionaries(dict.fromkeys(UNITS, TIMES)), seed=st.integers(0, 1 << 20))
def test_any_pace_of_streams_and_steps_gives_one_order(
    given_times: dict[str, list[int]], seed: int, tmp_path_factory: Any
) -> None:
    chance = random.Random(seed)
    rows = {
        query: sorted(((time, number) for number, time in enumerate(times)), key=_by(query))
        for query, times in given_times.items()
    }
    folder: Path = tmp_path_factory.getbasetemp()
    sink = Lines()
    answers = FromMemory(PROGRAM, folder, sink, is_interleaved=True)
    left = {query: list(each) for query, each in rows.items()}
    clocks = {"streams": 0, "job": 0}
    replies: list[dict[str, int]] = [{}]
    step = 0

    def ready(query: str, bound: float) -> list[pa.Table]:
        now = [row for row in left[query] if row[0] // UNITS[query] < bound]
        left[query] = left[query][len(now) :]
        return [table(query, now[n : n + 3]) for n in range(0, len(now), 3)]

    while min(clocks.values()) < END:
        # The log holds what both have not read: no side gets far before the other.
        slowest = min(clocks, key=lambda each: clocks[each])
        who = chance.choice([slowest, *(["streams"] if replies else [])])
        assert who != "streams" or replies, "streams wait, although the job is not behind"
        clock = clocks[who] = min(clocks[who] + chance.randint(0, 20) * SECOND // 3, END)
        is_over = clock == END
        bounds = {query: math.inf if is_over else clock // unit for query, unit in UNITS.items()}
        if who == "streams":
            replies.clear()
            given_rows = [(query, iter(ready(query, bounds[query]))) for query in STREAMS]
            positions = {
                stream: StreamPosition(bound=clock // UNITS[query], has_ended=is_over)
                for query, stream in STREAMS.items()
            }
            answers.on_rows(given_rows, positions, replies.append, is_last=is_over)
            continue
        promised = {"counts": {"time": bounds["counts"]}, "sevens": {"$order": bounds["sevens"]}}
        outputs = []
        for query in promised:
            if tables := ready(query, bounds[query]):
                output = CommittedOutput(query, f"{query}/{step}", sum(map(len, tables)))
                answers.tables[output.path] = tables
                outputs.append(output)
        if outputs or chance.random() < 0.5:
            step += 1
            answers.on_commit(step, outputs, promised)
        else:
            answers.on_bounds(promised)
    assert replies
    answers.finish()
    places = list(UNITS)
    expected = sorted(
        ((query, time, number) for query, each in rows.items() for time, number in each),
        key=lambda row: (_complete_s(row[0], row[1]), places.index(row[0]), _by(row[0])(row[1:])),
    )
    assert sink.rows == [(query, number) for query, _, number in expected]


def _by(query: str) -> Any:
    """The order of the rows of a query: its first column, then the number."""
    return lambda row: (row[0] // UNITS[query], row[1])


def _complete_s(query: str, time: int) -> int:
    """The second at whose end a row is complete; it is one past the last instant of its epoch."""
    end = (time // UNITS[query] + 1) * UNITS[query]
    return -(-end // SECOND)
