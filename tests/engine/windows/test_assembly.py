"""Windows assembled from slices, against plain loops over the rows of each window."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from gscope.engine.windows import slice_files, slice_store
from gscope.engine.windows.assembly import Assembly, WindowEnd, place_of
from gscope.engine.windows.layout import Layout, from_words, to_words
from gscope.engine.windows.pieces import NUMBER
from gscope.engine.windows.saved import SavedWindow, WindowStates
from gscope.engine.windows.timeline import Timeline
from gscope.errors import EngineError
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Partial
from gscope.queries.plan.windows.clamp import limits
from gscope.queries.plan.windows.slicing import Slicing
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow, Window

if TYPE_CHECKING:
    from pathlib import Path

_MASK = (1 << 64) - 1
MAX_NAN = "NaN"
"""Stands for NaN, which equals itself as the greatest value."""

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
            bits = chosen.choice([0, 32, 128])
            value = chosen.choice([(1 << 128) - 1, chosen.getrandbits(bits)]).to_bytes(16)
        elif partial.type is GsqlType.FLOAT:
            value = chosen.choice([0.0, -1.5, math.inf, -math.inf, math.nan, chosen.random()])
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
            return MAX_NAN if any(value != value for value in present) else max(present)
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
        self.states = WindowStates(folder, self.layout)
        self.answers: Answers = {}
        self.windows: list[int] = []
        self.saved: tuple[str, SavedWindow] | None = None
        self.steps = 0

    def restart(self) -> None:
        """Forget all but the files."""
        self.states = WindowStates(self.folder, self.layout)

    def step(self, rows: list[Row], high: float, *, fails: bool = False) -> None:
        """Do one step, a second time if the first attempt fails after the last window."""
        self.steps += 1
        if fails:
            self._assembly(rows).run(high, lambda _: None)
        assembly = self._assembly(rows)
        saved = assembly.run(high, lambda end: self._answer(end, assembly))
        self.saved = None
        if saved is not None:
            name = f"{self.steps:06d}-live.arrow"
            self.states.write(name, saved)
            first = self.timeline.slicing.number(self.timeline.window.start(saved.window))
            assert saved.span == (first, max(file.last for file in saved.files))
            self.saved = name, saved
        kept = {name, *(f.name for f in saved.files)} if saved is not None else set()
        for path in self.folder.iterdir():
            if path.name not in kept:
                path.unlink()

    def _assembly(self, rows: list[Row]) -> Assembly:
        before = None
        if self.saved is not None:
            before = self.states.read(self.saved[0], len(self.saved[1].ids))
        return Assembly(
            self.timeline,
            self.layout,
            ("k0", "k1"),
            table(rows, self.timeline.slicing),
            before,
            self.states.opened,
            f"{self.steps:06d}-",
        )

    def _answer(self, end: WindowEnd, assembly: Assembly) -> None:
        self.windows.append(end.window)
        keys = assembly.keys.take(pa.array(end.places)).to_pylist()
        columns = [self.layout.column(p.name, end.numbers).to_pylist() for p in PARTIALS]
        for key, *values in zip(keys, *columns, strict=True):
            place = end.window, key["k0"], key["k1"]
            assert place not in self.answers
            self.answers[place] = tuple(MAX_NAN if v != v else v for v in values)


def random_window(chosen: random.Random) -> Window:
    """Return a window of any kind."""
    if chosen.random() < 0.2:
        return RepeatedSlices(tuple(chosen.randrange(1, 9) for _ in range(chosen.randrange(1, 4))))
    slide = chosen.randrange(1, 12)
    return SlidingWindow(chosen.choice([slide, chosen.randrange(1, 80)]), slide)


@pytest.mark.parametrize("seed", range(60))
def test_windows_equal_plain_loops(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = random.Random(seed)
    # Files of many batches, and pieces that are cut: a batch has up to four times as many rows.
    monkeypatch.setattr(slice_files, "BATCH_ROWS", chosen.choice([1, 3, slice_files.BATCH_ROWS]))
    monkeypatch.setattr(slice_store, "FAN", chosen.choice([2, slice_store.FAN]))
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
        if chosen.random() < 0.3:
            steps.restart()
        steps.step(ready, high, fails=chosen.random() < 0.3)
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


def test_least_and_greatest_numbers_have_the_order_of_all_levels() -> None:
    values = [-math.inf, -2.5, -0.0, 0.0, 2.5, math.inf, math.nan, -math.nan]
    words = to_words(pa.array(values), GsqlType.FLOAT)
    assert words.tolist() == sorted(words.tolist())
    shown = [repr(value) for value in from_words(words, GsqlType.FLOAT, None).to_pylist()]
    assert shown == ["-inf", "-2.5", "0.0", "0.0", "2.5", "inf", "nan", "nan"]
    addresses = [n.to_bytes(16) for n in (0, 1, 1 << 63, 1 << 64, 1 << 127, (1 << 128) - 1)]
    pairs = to_words(pa.array(addresses, pa.binary(16))[1:], GsqlType.IP)
    assert pairs.tolist() == sorted(pairs.tolist())
    assert from_words(pairs, GsqlType.IP, None).to_pylist() == addresses[1:]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("*-live.arrow", r"cannot read the state of \d+ groups in .*-live\.arrow: "),
        ("*-slices*.arrow", r"cannot read slices of a window in .*-slices\d\.arrow: "),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(
    pattern: str, message: str, tmp_path: Path
) -> None:
    chosen, window = random.Random(0), SlidingWindow(100, 1)
    steps = Steps(window, Slicing.of([window]), tmp_path)
    steps.step([random_row(chosen, 5, 3)], 6)
    (path,) = tmp_path.glob(pattern)
    path.write_bytes(path.read_bytes()[:100])
    steps.restart()
    with pytest.raises(EngineError, match=message):
        steps.step([], math.inf)


def test_a_state_of_other_groups_is_an_error(tmp_path: Path) -> None:
    chosen, window = random.Random(0), SlidingWindow(100, 1)
    steps = Steps(window, Slicing.of([window]), tmp_path)
    steps.step([random_row(chosen, 5, 3)], 6)
    assert steps.saved is not None
    steps.restart()
    with pytest.raises(EngineError, match=r"expected the state of 2 groups in .*, got 1"):
        steps.states.read(steps.saved[0], 2)


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


@pytest.mark.parametrize("spread", [1, 3, 1_000])
@pytest.mark.parametrize("count", [1, 2, 500])
def test_places_are_those_of_the_identities(count: int, spread: int) -> None:
    chosen = random.Random(count)
    ids = sorted(chosen.sample(range(1 << 40, (1 << 40) + count * spread), count))
    asked = chosen.choices(ids, k=50)
    places = place_of(np.array(ids))(np.array(asked))
    assert places.tolist() == [ids.index(each) for each in asked]
