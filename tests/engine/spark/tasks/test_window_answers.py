"""Answers of windows over an LFTA's tuples, without Spark, against plain loops over packets."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from gscope.engine.spark.tasks import window_answers
from gscope.engine.spark.tasks.window_answers import AnswerPlan, WindowAnswers, stored_type
from gscope.engine.windows.assembly import Assembly
from gscope.engine.windows.saved import SavedWindow, WindowStates
from gscope.engine.windows.slice_files import OpenFiles
from gscope.engine.windows.timeline import Timeline
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Expression, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.window_node import WindowNode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.queries.plan.program import Lfta

Packet = dict[str, Any]
RANGE, SLIDE = 20, 6

QUERIES: dict[str, tuple[str, Callable[[list[Packet]], tuple[Any, ...] | None]]] = {
    "single": (
        "SELECT window_start, window_end, srcIP, count(*) AS c, avg(len) AS a, min(len) AS m,"
        " sum(sequence_number) AS s FROM TCP [RANGE 20 SLIDE 6] GROUP BY srcIP"
        " HAVING count(*) > 1 AND INT(window_end) > 6000000000",
        lambda held: (
            (
                len(held),
                sum(p["len"] for p in held) / len(held),
                min(p["len"] for p in held),
                sum(p["sequence_number"] for p in held),
            )
            if len(held) > 1
            else None
        ),
    ),
    "sums in halves": (
        "SELECT window_start, window_end, srcIP, avg(4194304 * len) AS a,"
        " avg(4194304 * vlan) AS b FROM IP [RANGE 20 SLIDE 6] GROUP BY srcIP",
        lambda held: (
            mean([4194304 * p["len"] for p in held]),
            mean([4194304 * p["vlan"] for p in held if p["vlan"] is not None]),
        ),
    ),
    "counted": (
        "SELECT window_start, window_end, srcIP, count(*) AS c, avg(len) AS a,"
        " count_distinct(destPort) AS d, count_dups(destPort) AS r"
        " FROM TCP [RANGE 20 SLIDE 6] GROUP BY srcIP HAVING count_distinct(destPort) > 1",
        lambda held: (
            (
                len(held),
                sum(p["len"] for p in held) / len(held),
                len({p["destPort"] for p in held}),
                len(held) - len({p["destPort"] for p in held}),
            )
            if len({p["destPort"] for p in held}) > 1
            else None
        ),
    ),
    "counted with NULL": (
        "SELECT window_start, window_end, vlan, count(*) AS c, count_distinct(srcPort) AS d,"
        " count_dups(srcPort) AS r FROM IP [RANGE 20 SLIDE 6] GROUP BY vlan",
        lambda held: (len(held), *distinct_and_repeated([p["srcPort"] for p in held])),
    ),
    "merged": (
        "SELECT window_start, window_end, srcIP, max(len) AS m, count_distinct(destPort) AS d"
        " FROM TCP [RANGE 20 SLIDE 6] GROUP BY srcIP",
        lambda held: (max(p["len"] for p in held), len({p["destPort"] for p in held})),
    ),
}


def distinct_and_repeated(values: list[int | None]) -> tuple[int, int]:
    present = [value for value in values if value is not None]
    return len(set(present)), len(present) - len(set(present))


def mean(values: list[int]) -> float | None:
    return sum(values) / len(values) if values else None


def compiled(text: str) -> tuple[WindowNode, Lfta]:
    program = compile_queries([QueryText(text, "q")], CompileContext(("a",))).program
    (node,) = program.nodes
    assert isinstance(node, WindowNode)
    return node, program.lftas[0]


def packets(seed: int) -> list[Packet]:
    chosen, time, made = random.Random(seed), 0, []
    for _ in range(300):
        time += chosen.choice([0, 0, 0, 0, 1, 1, 2, chosen.choice([3, 40, 10**7])])
        made.append(
            {
                "time": time,
                "srcIP": chosen.randrange(3),
                "destPort": chosen.randrange(4),
                "srcPort": chosen.choice([None, 1, 2, 3]),
                "vlan": chosen.choice([None, 7, 8]),
                "len": chosen.randrange(1500),
                "sequence_number": chosen.randrange(1 << 32),
            }
        )
    return made


def tuples(plan: AnswerPlan, lfta: Lfta, held: list[Packet]) -> pa.Table:
    """Return the tuples that ``lfta`` would make of packets if it evicted each at once."""

    def value(expression: Expression, packet: Packet) -> Any:
        def leaf(part: Any) -> Any:
            assert isinstance(part, PacketField)
            return packet[part.name]

        made: Any = evaluate(expression, leaf)
        return made.to_bytes(16) if expression.type is GsqlType.IP and made is not None else made

    kinds = {key.name: stored_type(key.expression.type) for key in lfta.keys}
    columns = {
        key.name: pa.array([value(key.expression, p) for p in held], kinds[key.name])
        for key in lfta.keys
    }
    for each in lfta.partials:
        values = [True if each.argument is None else value(each.argument, p) for p in held]
        if each.op is PartialOp.COUNT:
            values = [int(value is not None) for value in values]
        columns[each.name] = pa.array(values, pa.int64())
    needed = [plan.node.epoch_expression, *plan.key_names, *(p.name for p in plan.layout.partials)]
    return pa.table(columns).select([getattr(each, "name", each) for each in needed])


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_answers_equal_plain_loops(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_answers, "ANSWER_ROWS", (1, 60, window_answers.ANSWER_ROWS)[seed])
    text, answer = QUERIES[name]
    node, lfta = compiled(text)
    plan = AnswerPlan.of(node)
    assert plan.is_single == (name != "merged")
    assert (plan.counted is not None) == name.startswith("counted")
    assert node.slices is not None
    timeline = Timeline(node.window, node.slices.slicing)
    all_packets, chosen = packets(seed), random.Random(seed)
    ends = sorted({node.windows.end_slice(chosen.randrange(40)) for _ in range(8)})
    answers: list[pa.Table] = []
    states = WindowStates(tmp_path, plan.layout)
    saved: SavedWindow | None = None
    rows = 0
    for step, (low, high) in enumerate(pairwise([-math.inf, *ends, math.inf])):
        held = [p for p in all_packets if low <= timeline.slicing.number(p["time"]) < high]
        before = None if saved is None else states.read(f"{step - 1}", rows)
        read = tuples(plan, lfta, held)
        assembly = Assembly(
            timeline,
            plan.layout,
            plan.key_names,
            read,
            before,
            states.opened,
            f"{step}-",
            plan.counted,
        )
        collected = WindowAnswers(plan, answers.append)
        saved = assembly.run(high, partial(collected.add, keys=assembly.keys))
        collected.flush(assembly.keys)
        if saved is not None:
            states.write(f"{step}", saved)
            rows = len(saved.ids)
    got = [tuple(row.values()) for table in answers for row in table.to_pylist()]
    if plan.is_single:
        assert [row[1] for row in got] == sorted(row[1] for row in got)
    expected = []
    windows = {w for p in all_packets for w in range(p["time"] // 6 + 1, (p["time"] + 20) // 6 + 1)}
    for end in sorted(6 * window for window in windows):
        groups: dict[Any, list[Packet]] = {}
        for packet in all_packets:
            if end - RANGE <= packet["time"] < end:
                key = packet["vlan"] if "NULL" in name else packet["srcIP"].to_bytes(16)
                groups.setdefault(key, []).append(packet)
        for key, held in groups.items():
            values = answer(held)
            if values is not None and not (name == "single" and end <= 6):
                edges = (end - RANGE) * 10**9, end * 10**9
                expected.append((*edges, key, *values))
    assert Counter(got) == Counter(expected)


@pytest.mark.parametrize("least", [0, 4, 1_000_000])
def test_limit_keeps_the_rows_that_a_sort_of_all_would_keep(least: int, tmp_path: Path) -> None:
    """HAVING keeps all groups, those of some windows, or none."""
    text = (
        "SELECT window_end, srcIP, destPort, sum(len) AS b FROM TCP [RANGE 20 SLIDE 6]"
        f" GROUP BY srcIP, destPort HAVING sum(len) >= {least} ORDER BY b DESC LIMIT 3"
    )
    node, lfta = compiled(text)
    plan = AnswerPlan.of(node)
    assert plan.is_single
    assert node.slices is not None
    # Few lengths make ties, which the other columns decide.
    held = [{**p, "len": p["len"] % 3} for p in packets(5)]
    answers: list[pa.Table] = []
    written = WindowAnswers(plan, answers.append)
    rows = tuples(plan, lfta, held)
    timeline = Timeline(node.window, node.slices.slicing)
    opened = OpenFiles(tmp_path)
    assembly = Assembly(timeline, plan.layout, plan.key_names, rows, None, opened, "0-")
    assembly.run(math.inf, lambda end: written.add(end, assembly.keys))
    written.flush(assembly.keys)
    got = [
        (row["window_end"] // 10**9, int.from_bytes(row["srcIP"]), row["destPort"], row["b"])
        for table in answers
        for row in table.to_pylist()
    ]
    expected = []
    windows = {w for p in held for w in range(p["time"] // 6 + 1, (p["time"] + 20) // 6 + 1)}
    for end in sorted(6 * window for window in windows):
        sums: dict[tuple[int, int], int] = {}
        for packet in held:
            if end - RANGE <= packet["time"] < end:
                key = packet["srcIP"], packet["destPort"]
                sums[key] = sums.get(key, 0) + packet["len"]
        heavy = [each for each in sums.items() if each[1] >= least]
        kept = sorted(heavy, key=lambda each: (-each[1], each[0]))[:3]
        expected += [(end, *key, total) for key, total in kept]
    assert got == expected
    assert bool(got) == (least < 1_000_000)
