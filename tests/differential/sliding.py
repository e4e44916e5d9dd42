"""Random windows, as they are written, and what they mean: which of them hold a time.

A window answers at every multiple of its slide about the ``range`` before it, without its end.
Slices are windows of several lengths in turn, from time 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.differential.syntax import Expression, Field, Query, Type

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.differential.syntax import Group, Readable

_SECOND_NS = 10**9
_MILLISECOND_NS = 10**6
_CLOCK = Field("time_ns", Type.INT, unit_ns=1)
_MOST_WINDOWS = 64
"""The most windows that may hold a tuple."""

_SLIDES_NS = tuple(n * _SECOND_NS for n in (1, 2, 3, 5, 7, 15, 30, 60)) + tuple(
    n * _MILLISECOND_NS for n in (100, 333, 500, 1500)
)
_RANGES_NS = tuple(n * _SECOND_NS for n in (1, 2, 5, 7, 18, 30, 60, 61, 100)) + tuple(
    n * _MILLISECOND_NS for n in (100, 250, 750, 2250, 7001)
)


@dataclass(frozen=True, slots=True)
class Window:
    """Windows over the column ``on``.

    Attributes:
        lengths: range and slide, or the lengths of slices; in the unit of ``on``.
        is_clock: whether they are over the packets' clock or a TIMESTAMP.
        text: how the query says so.
        is_before_alias: whether that stands before the alias of the input.
    """

    on: Field
    lengths: tuple[int, ...]
    is_slices: bool
    is_clock: bool
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
    def columns(self) -> tuple[tuple[Expression, int], ...]:
        """The columns of the window with their units."""
        kind = Type.TIMESTAMP if self.is_clock else Type.INT
        unit_ns = 1 if self.is_clock else self.on.unit_ns
        return tuple(
            (Expression("key", kind, text=name), unit_ns) for name in ("window_start", "window_end")
        )


def random_window(random: Random, source: Readable) -> Window:
    """A window over packets, or over an increasing column of a query."""
    if not isinstance(source, Query):
        return _over(random, _CLOCK, is_clock=True, on="")
    known = [field for field in source.fields if field.unit_ns]
    is_only = len(known) == 1 and not any(f.is_ordered for f in source.fields if not f.unit_ns)
    column = random.choice(known)
    on = "" if is_only and random.random() < 0.5 else f" ON {column.name}"
    return _over(random, column, is_clock=column.type is Type.TIMESTAMP, on=on)


def other_window(random: Random, query: Group, name: str) -> Group:
    """The same query over another window, with some of its columns: both can share their slices."""
    assert query.window is not None
    count = len(query.columns)
    kept = count if query.is_distinct else random.randint(1, count)
    at = sorted(random.sample(range(count), kept))
    on = query.window.on
    text = f" ON {on.name}" if f" ON {on.name}]" in query.window.text else ""
    return replace(
        query,
        name=name,
        window=_over(random, on, is_clock=query.window.is_clock, on=text),
        columns=tuple(query.columns[i] for i in at),
        fields=tuple(query.fields[i] for i in at),
        order=(),
        limit=None,
    )


def _over(random: Random, column: Field, *, is_clock: bool, on: str) -> Window:
    """The text names no column if ``on`` is empty."""
    is_slices = random.random() < 0.15
    lengths_ns = _slices(random) if is_slices else _range_and_slide(random)
    # A number alone is in seconds over packets; a TIMESTAMP needs a unit.
    is_seconds = all(length % _SECOND_NS == 0 for length in lengths_ns)
    if is_clock:
        lengths = lengths_ns
        can_be_bare = is_seconds and not on and column == _CLOCK
        texts = [_length(random, length, can_be_bare=can_be_bare) for length in lengths]
    else:
        lengths = tuple(max(1, length // column.unit_ns) for length in lengths_ns)
        texts = [random.choice((f"{length}", f"'{length}'")) for length in lengths]
    if is_slices:
        text = f"[SLICES {', '.join(texts)}{on}]"
    elif lengths[0] == lengths[1] and random.random() < 0.7:
        text = f"[RANGE {texts[0]}{on}]"
    else:
        text = f"[RANGE {texts[0]} SLIDE {texts[1]}{on}]"
    return Window(column, lengths, is_slices, is_clock, text, random.random() < 0.3)


def _range_and_slide(random: Random) -> tuple[int, int]:
    """Hopping, tumbling and overlapping, the slide often no divisor of the range."""
    slide = random.choice(_SLIDES_NS)
    if random.random() < 0.2:
        return slide, slide
    chosen = random.choice([r for r in _RANGES_NS if r <= _MOST_WINDOWS * slide])
    return chosen, slide


def _slices(random: Random) -> tuple[int, ...]:
    return tuple(random.choice(_SLIDES_NS) for _ in range(random.randint(1, 4)))


def _length(random: Random, length_ns: int, *, can_be_bare: bool) -> str:
    """A length of time in one of the ways to write it."""
    milliseconds = length_ns // _MILLISECOND_NS
    texts = [f"'{milliseconds} ms'", f"'{milliseconds / 1000:g} sec'"]
    texts += [f"INTERVAL {text}" for text in texts]
    if can_be_bare:
        texts += [f"{milliseconds // 1000}", f"'{milliseconds // 1000}'"] * 2
    return random.choice(texts)
