"""Random windows, as they are written, and what they mean: which of them hold a time.

A window answers at every multiple of its slide about the ``range`` before it, without its end.
Slices are windows of several lengths in turn, from time 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.differential.syntax import (
    Expression,
    Field,
    Group,
    Join,
    Merge,
    Query,
    Select,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.differential.syntax import Readable

_SECOND_NS = 10**9
_MILLISECOND_NS = 10**6
_MOST_WINDOWS = 64
"""The most windows that may hold a tuple."""

_SLIDES_NS = tuple(n * _SECOND_NS for n in (1, 2, 3, 5, 7, 15, 30, 60)) + tuple(
    n * _MILLISECOND_NS for n in (100, 333, 500, 1500)
)
_RANGES_NS = tuple(n * _SECOND_NS for n in (1, 2, 5, 7, 18, 30, 60, 61, 100)) + tuple(
    n * _MILLISECOND_NS for n in (100, 250, 750, 2250, 7001)
)


@dataclass(frozen=True, slots=True)
class Column:
    """What windows slide along.

    Attributes:
        name: the entry of a row with its value.
        text: how a query names it; empty for packets' clock and for results of windows.
        unit_ns: about how much time 1 is.
        kind: of the ends of windows: TIMESTAMP if the values count time, None where it is not said.
        bare_ns: what 1 counts in a length without a unit.
    """

    name: str
    text: str
    unit_ns: int
    kind: Type | None
    bare_ns: int


CLOCK = Column("time_ns", "", 1, Type.TIMESTAMP, _SECOND_NS)
WINDOW_TIME = "$window_time"
"""The entry of a row of a window with the last time in it."""


@dataclass(frozen=True, slots=True)
class Window:
    """Windows over the column ``on``.

    Attributes:
        lengths: range and slide, or the lengths of slices; in the unit of ``on``.
        text: how the query says so.
        is_before_alias: whether that stands before the alias of the input.
    """

    on: Column
    lengths: tuple[int, ...]
    is_slices: bool
    text: str
    is_before_alias: bool

    def holding(self, time: int) -> Iterator[tuple[int, int]]:
        """Start and end of every window with ``time`` in it, one after the other."""
        if self.is_slices:
            start = time - time % sum(self.lengths)
            for length in self.lengths:
                if start <= time < start + length:
                    yield start, start + length
                start += length
            return
        range_, slide = self.lengths
        end = time + slide - time % slide
        while end - range_ <= time:
            yield end - range_, end
            end += slide

    @property
    def scale(self) -> int:
        """What the ends of windows are multiplied with where queries see them."""
        return self.on.unit_ns if self.on.kind is not None else 1

    @property
    def columns(self) -> tuple[tuple[Expression, int], ...]:
        """The columns of the window with their units."""
        kind = self.on.kind
        if kind is None:
            return ()
        names = ("window_start", "window_end")
        return tuple((Expression("key", kind, text=name), 1) for name in names)


def random_window(random: Random, source: Readable) -> Window:
    """A window over packets, or over an increasing column of a query."""
    if not isinstance(source, Query):
        return window_over(random, CLOCK)
    below = source.window if isinstance(source, Group) else None
    if below is not None and below.on.kind is not None and random.random() < 0.5:
        column = Column(WINDOW_TIME, "", 1, Type.TIMESTAMP, _SECOND_NS)
        tiles = tuple(length * below.scale for length in below.lengths) if below.is_slices else ()
        return window_over(random, column, tiles)
    field = random.choice([field for field in source.fields if field.unit_ns])
    counts_ns = clock_of(source, field)
    # Of other expressions it is not said here whether they count time.
    kind = Type.TIMESTAMP if counts_ns else None
    unit_ns = counts_ns or field.unit_ns
    bare_ns = _SECOND_NS if field.type is Type.TIMESTAMP else unit_ns
    return window_over(random, Column(field.name, field.name, unit_ns, kind, bare_ns))


def clock_of(source: Readable, field: Field) -> int | None:
    """The nanoseconds that 1 stands for in times and their quotients; None for all else."""
    if field.type is Type.TIMESTAMP:
        return 1
    if not isinstance(source, Query):
        return field.unit_ns or None
    if not isinstance(source, Select | Group) or isinstance(source.source, Join):
        return None
    columns = {named.name: named.expression for named in source.columns}
    expression = columns[field.name]
    if isinstance(source, Group) and expression.op == "key" and expression.arguments:
        (expression,) = expression.arguments
    count = 1
    if expression.op in ("/", "div") and expression.arguments[1].op == "literal":
        expression, by = expression.arguments
        count = by.value if isinstance(by.value, int) else 0
    known = {field.name: field for field in source.source.fields}
    if expression.op != "column" or count < 1 or expression.text not in known:
        return None
    below = known[expression.text]
    counts_ns = clock_of(source.source, below) if below.unit_ns else None
    return None if counts_ns is None else counts_ns * count


def can_slide(source: Readable) -> bool:
    """Whether the times of a source never decrease; with SLACK they may."""
    if isinstance(source, Merge):
        return not source.slack and all(can_slide(one) for one in source.inputs)
    if isinstance(source, Select):
        return not isinstance(source.source, Join) and can_slide(source.source)
    return not isinstance(source, Group) or not isinstance(source.source, Join)


def other_window(random: Random, query: Group, name: str) -> Group:
    """The same query over another window, with some of its columns: both can share their slices."""
    assert query.window is not None
    count = len(query.columns)
    needs_all = query.is_distinct or not query.keys
    kept = count if needs_all else random.randint(1, count)
    at = sorted(random.sample(range(count), kept))
    below = query.source.window if isinstance(query.source, Group) else None
    on = query.window.on
    is_tiled = below is not None and below.is_slices and on.name == WINDOW_TIME
    tiles = tuple(n * below.scale for n in below.lengths) if below and is_tiled else ()
    return replace(
        query,
        name=name,
        window=window_over(random, on, tiles),
        columns=tuple(query.columns[i] for i in at),
        fields=tuple(query.fields[i] for i in at),
        order=(),
        limit=None,
    )


def window_over(random: Random, on: Column, tiles: tuple[int, ...] = ()) -> Window:
    """A random window along ``on``; over slices one that consists of whole ``tiles``."""
    is_slices = random.random() < 0.15 and not tiles
    lengths_ns = _slices(random) if is_slices else _range_and_slide(random)
    lengths = tuple(max(1, length // on.unit_ns) for length in lengths_ns)
    if tiles:
        slide = sum(tiles) * random.randint(1, 2)
        suffix = sum(tiles[random.randrange(len(tiles)) :])
        lengths = (random.randint(0, 3) * sum(tiles) + suffix, slide)
    texts = [_length(random, length, on) for length in lengths]
    clause = f" ON {on.text}" if on.text else ""
    if is_slices:
        text = f"[SLICES {', '.join(texts)}{clause}]"
    elif lengths[0] == lengths[1] and random.random() < 0.7:
        text = f"[RANGE {texts[0]}{clause}]"
    else:
        text = f"[RANGE {texts[0]} SLIDE {texts[1]}{clause}]"
    return Window(on, lengths, is_slices, text, random.random() < 0.3)


def _range_and_slide(random: Random) -> tuple[int, int]:
    """Hopping, tumbling and overlapping, the slide often no divisor of the range."""
    slide = random.choice(_SLIDES_NS)
    if random.random() < 0.2:
        return slide, slide
    chosen = random.choice([r for r in _RANGES_NS if r <= _MOST_WINDOWS * slide])
    return chosen, slide


def _slices(random: Random) -> tuple[int, ...]:
    return tuple(random.choice(_SLIDES_NS) for _ in range(random.randint(1, 4)))


def _length(random: Random, length: int, on: Column) -> str:
    """A length in one of the ways to write it."""
    milliseconds, finer = divmod(length * on.unit_ns, _MILLISECOND_NS)
    texts = []
    if on.kind is not None and not finer:
        texts += [f"'{milliseconds} ms'", f"'{milliseconds / 1000!r} sec'"]
        texts += [f"INTERVAL {text}" for text in texts]
    bare, rest = divmod(length * on.unit_ns, on.bare_ns)
    if not rest:
        texts += [f"{bare}", f"'{bare}'"] * 2
    return random.choice(texts)
