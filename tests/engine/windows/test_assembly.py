"""Windows assembled from slices, against plain loops over the rows of each window."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from gscope.engine.windows.assembly import Assembly, WindowEnd
from gscope.engine.windows.layout import Layout
from gscope.engine.windows.pieces import NUMBER
from gscope.engine.windows.saved import SavedWindow, read_saved, write_saved
from gscope.engine.windows.timeline import Timeline
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Partial
from gscope.queries.plan.windows.clamp import limits
from gscope.queries.plan.windows.slicing import Slicing
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow, Window

if TYPE_CHECKING:
    from pathlib import Path

_MASK = (1 << 64) - 1

PARTIALS = (
    Partial("n0", PartialOp.COUNT, None, GsqlType.INT, is_nullable=False),
    Partial("total", PartialOp.SUM, None, GsqlType.INT, is_nullable=False),
    Partial("some", PartialOp.SUM, None, GsqlType.INT, is_nullable=True),
    Partial("least", PartialOp.MIN, None, GsqlType.INT, is_nullable=True),
    Partial("most", PartialOp.MAX, None, GsqlType.FLOAT, is_nullable=True),
    Partial("any", PartialOp.OR, None, GsqlType.INT, is_nullable=False),
    Partial("all", PartialOp.AND, None, GsqlType.INT, is_nullable=True),
    Partial("odd", PartialOp.XOR, None, GsqlType.INT, is_nullable=True),
    Partial("first_address", PartialOp.MIN, None, GsqlType.IP, is_nullable=True),
    Partial("last_address", PartialOp.MAX, None, GsqlType.IP, is_nullable=False),
    Partial("flag", PartialOp.MAX, None, GsqlType.BOOL, is_nullable=True),
)
_TYPES = {GsqlType.FLOAT: pa.float64(), GsqlType.IP: pa.binary(16), GsqlType.BOOL: pa.bool_()}

Row = dict[str, Any]
Answers = dict[tuple[int, Any, Any], tuple[Any, ...]]


def random_row(chosen: random.Random, time: int, groups: int) -> Row:
    """Return a tuple at ``time`` as partials of itself."""
    row: Row = {"t": time, "k0": chosen.choice([None, *range(groups)])}
    row["k1"] = None if chosen.random() < 0.1 else chosen.randrange(3).to_bytes(16)
    for partial in PARTIALS:
        value: Any = chosen.choice([0, 1, -1, 7, (1 << 63) - 1, -(1 << 63), chosen.getrandbits(40)])
        if partial.op is PartialOp.COUNT:
            value = chosen.randrange(1, 4)
        elif partial.type is GsqlType.IP:
            value = chosen.choice([0, (1 << 128) - 1, chosen.getrandbits(128)]).to_bytes(16)
        elif partial.type is GsqlType.FLOAT:
            value = chosen.choice([0.0, -1.5, math.inf, -math.inf, chosen.random()])
        elif partial.type is GsqlType.BOOL:
            value = chosen.random() < 0.3
        row[partial.name] = None if partial.is_nullable and chosen.random() < 0.4 else value
    return row


def table(rows: list[Row], slicing: Slicing) -> pa.Table:
    """Return rows as the assembly reads them."""
    columns = {
        NUMBER: pa.array([slicing.number(row["t"]) for row in rows], pa.int64()),
        "k0": pa.array([row["k0"] for row in rows], pa.int64()),
        "k1": pa.array([row["k1"] for row in rows], pa.binary(16)),
    }
    for partial in PARTIALS:
        kind = _TYPES.get(partial.type, pa.int64())
        columns[partial.name] = pa.array([row[partial.name] for row in rows], kind)
    return pa.table(columns)


def folded(op: PartialOp, values: list[Any]) -> Any:
    """Return the fold of values that may be NULL, in plain Python."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    match op:
        case PartialOp.COUNT | PartialOp.SUM:
            wrapped = sum(present) & _MASK
            return wrapped - (1 << 64) if wrapped >> 63 else wrapped
        case PartialOp.MIN:
            return min(present)
        case PartialOp.MAX:
            return max(present)
    made = present[0]
    for value in present[1:]:
        if op is PartialOp.OR:
            made |= value
        elif op is PartialOp.AND:
            made &= value
        else:
            made ^= value
    return made


def by_loops(rows: list[Row], windows: range, window: Window) -> Answers:
    """Return the answers of ``windows`` from the tuples of each."""
    answers: Answers = {}
    for number in windows:
        start, end = window.start(number), window.end(number)
        groups: dict[tuple[Any, Any], list[Row]] = {}
        for row in rows:
            if start <= row["t"] < end:
                groups.setdefault((row["k0"], row["k1"]), []).append(row)
        for (k0, k1), held in groups.items():
            answers[number, k0, k1] = tuple(
                folded(p.op, [r[p.name] for r in held]) for p in PARTIALS
            )
    return answers


class Steps:
    """An assembly that goes from step to step through files."""

    def __init__(self, window: Window, slicing: Slicing, folder: Path) -> None:
        self.timeline = Timeline(window, slicing)
        self.layout = Layout.of(PARTIALS)
        self.folder = folder
        self.answers: Answers = {}
        self.windows: list[int] = []
        self.saved: tuple[str, SavedWindow] | None = None
        self.steps = 0

    def step(self, rows: list[Row], high: float) -> None:
        """Do one step."""
        self.steps += 1
        before = None
        if self.saved is not None:
            before = read_saved(self.folder, self.saved[0], self.layout, len(self.saved[1].ids))
        assembly = Assembly(
            self.timeline,
            self.layout,
            ("k0", "k1"),
            table(rows, self.timeline.slicing),
            before,
            self.folder,
            f"{self.steps:06d}-",
        )
        saved = assembly.run(high, lambda end: self._answer(end, assembly))
        self.saved = None
        if saved is not None:
            name = f"{self.steps:06d}-live.arrow"
            write_saved(self.folder, name, saved)
            self.saved = name, saved
        kept = {name, *(f.name for f in saved.files)} if saved is not None else set()
        for path in self.folder.iterdir():
            if path.name not in kept:
                path.unlink()

    def _answer(self, end: WindowEnd, assembly: Assembly) -> None:
        self.windows.append(end.window)
        keys = assembly.keys.take(pa.array(end.places)).to_pylist()
        columns = [self.layout.column(p.name, end.numbers).to_pylist() for p in PARTIALS]
        for key, *values in zip(keys, *columns, strict=True):
            place = end.window, key["k0"], key["k1"]
            assert place not in self.answers
            self.answers[place] = tuple(values)


def random_window(chosen: random.Random) -> Window:
    """Return a window of any kind."""
    if chosen.random() < 0.2:
        return RepeatedSlices(tuple(chosen.randrange(1, 9) for _ in range(chosen.randrange(1, 4))))
    slide = chosen.randrange(1, 12)
    return SlidingWindow(chosen.choice([slide, chosen.randrange(1, 80)]), slide)


@pytest.mark.parametrize("seed", range(60))
def test_windows_equal_plain_loops(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    window = random_window(chosen)
    others = [random_window(chosen) for _ in range(chosen.randrange(3))]
    slicing = Slicing.of([window, *others])
    if isinstance(window, SlidingWindow) and chosen.random() < 0.2:
        slicing = Slicing.paned([window])
    least, greatest = limits(window)
    time, rows = chosen.choice([-50, 0, 1_000_000_007]), []
    if not others and chosen.random() < 0.4:
        time = chosen.choice([least, greatest - 200])
    for _ in range(chosen.choice([0, 1, 60, 150])):
        time += chosen.choice([0, 0, 1, 2, 5, chosen.choice([3, 90, 10**12])])
        time = min(time, greatest)
        rows.append(random_row(chosen, time, chosen.choice([1, 4])))
    steps = Steps(window, slicing, tmp_path)
    done, clock = 0, rows[0]["t"] if rows else 0
    while done < len(rows):
        clock = max(clock, rows[min(done + chosen.choice([0, 0, 3, 40]), len(rows) - 1)]["t"])
        high = slicing.number(clock)
        if chosen.random() < 0.7:
            high = slicing.number(window.end(window.first_ending_after(clock) - 1))
        ready = [r for r in rows[done:] if slicing.number(r["t"]) < high]
        done += len(ready)
        chosen.shuffle(ready)
        steps.step(ready, high)
        if done == len(rows) - 1 or chosen.random() < 0.1:
            break
        clock += chosen.choice([0, 1, 30])
    rest = rows[done:]
    chosen.shuffle(rest)
    steps.step(rest, math.inf)
    assert steps.saved is None
    windows = set()
    for row in rows:
        windows |= set(
            range(window.first_ending_after(row["t"]), window.last_starting_by(row["t"]) + 1)
        )
    assert steps.windows == sorted({w for w, *_ in steps.answers})
    assert steps.answers == {
        place: values
        for number in windows
        for place, values in by_loops(rows, range(number, number + 1), window).items()
    }


def test_many_steps_leave_few_files(tmp_path: Path) -> None:
    chosen, window = random.Random(0), SlidingWindow(100, 1)
    slicing = Slicing.of([window])
    rows = [random_row(chosen, time, 3) for time in range(150)]
    steps = Steps(window, slicing, tmp_path)
    most = 0
    for time in range(150):
        steps.step([row for row in rows if row["t"] == time], slicing.number(time + 1))
        assert steps.saved is not None
        most = max(most, len(steps.saved[1].files))
    assert most <= 32
    assert steps.windows == list(range(1, 151))
    assert steps.answers == by_loops(rows, range(1, 151), window)
