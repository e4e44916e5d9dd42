"""The lengths of a window, in the unit of the column that it slides along."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from gscope.errors import TemporalError, TypeMismatchError
from gscope.queries.analysis.typing.constants import text_of
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql import nodes
from gscope.queries.gsql.intervals import read_interval_ns
from gscope.queries.gsql.literals import quote, write_interval
from gscope.queries.plan.windows.columns import WINDOW_TIME
from gscope.queries.plan.windows.tiling import tiled_ranges, tiles
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow

if TYPE_CHECKING:
    from gscope.errors import Position
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.analysis.windows.ordering_column import OrderingColumn
    from gscope.queries.expressions.expressions import Literal
    from gscope.queries.plan.logical import WindowGroupBy
    from gscope.queries.plan.windows.window import Window

MAX_OVERLAP = 1_000_000
"""The greatest quotient of RANGE and SLIDE: the most windows that hold one tuple."""

MAX_SLICES = 256
"""The most lengths of SLICES: the number of a slice takes a division for each."""

MAX_LENGTH = 1 << 62
"""The greatest length, so that no sum of two overflows 64 bits.

In nanoseconds, or in the unit of a column that does not count time.
"""


def read_window(written: nodes.Window, column: OrderingColumn, substitutes: Substitutes) -> Window:
    """Return the window that ``[RANGE …]`` or ``[SLICES …]`` describes, in the unit of that column.

    Args:
        written: the syntax.
        column: what it slides along.
        substitutes: the values of ``$x`` and ``#X``.

    Raises:
        GsqlError: a length is invalid.
    """
    if isinstance(written, nodes.SlicesWindow):
        if len(written.slices) > MAX_SLICES:
            message = f"invalid SLICES: expected at most {MAX_SLICES}, got {len(written.slices)}"
            remedy = "the slice of a packet is found by a division for each length"
            raise TypeMismatchError(message, position=written.position, remedy=remedy)
        lengths = tuple(_length(one, "SLICES", column, substitutes) for one in written.slices)
        if sum(lengths) * (column.unit_ns or 1) > MAX_LENGTH:
            what = "sum of SLICES"
            raise _too_long(what, written.position)
        return RepeatedSlices(lengths)
    range_ = _length(written.range, "RANGE", column, substitutes)
    slide = range_
    if written.slide is not None:
        slide = _length(written.slide, "SLIDE", column, substitutes)
    if range_ > MAX_OVERLAP * slide:
        times = f"{range_ // slide:,}"
        message = f"RANGE is {times} times SLIDE, and each tuple would be in {times} windows"
        remedy = f"write a longer SLIDE: RANGE may be {MAX_OVERLAP:,} times as long"
        raise TypeMismatchError(message, position=written.position, remedy=remedy)
    return SlidingWindow(range_, slide)


def check_tiling(below: WindowGroupBy, window: Window, what: str, position: Position) -> None:
    """Refuse a window over slices that begins or ends inside a slice.

    Args:
        below: the grouping whose result the window slides over.
        window: the window, in nanoseconds if ``below`` counts time, else in its unit.
        what: the name of the input.
        position: the place of the window in the text.

    Raises:
        TemporalError: it is not a range of whole slices.
    """
    if not isinstance(below.window, RepeatedSlices):
        return
    slices = below.window.scaled(below.unit_ns or 1)
    if tiles(slices, window):
        return
    is_time = below.unit_ns is not None
    lengths = ", ".join(_shown(length, is_time=is_time) for length in slices.lengths)
    message = f"the slices of {what}, {lengths}, do not tile this window"
    remedy = (
        f"windows must begin and end between slices; let lengths be multiples of "
        f"{_shown(slices.period, is_time=is_time)}"
    )
    if isinstance(window, SlidingWindow) and (ranges := tiled_ranges(slices, window)):
        shown = " or ".join(_shown(length, is_time=is_time) for length in ranges)
        slide = _shown(window.slide, is_time=is_time)
        remedy = f"windows must begin and end between slices: with SLIDE {slide}, RANGE {shown}"
    raise TemporalError(message, position=position, remedy=remedy)


def _shown(length: int, *, is_time: bool) -> str:
    return quote(write_interval(length)) if is_time else str(length)


def _length(
    extent: nodes.Extent, what: str, column: OrderingColumn, substitutes: Substitutes
) -> int:
    """Return a length in the unit of the column."""
    value = _constant(extent, substitutes)
    length, is_time = value.value, value.type is GsqlType.INTERVAL
    if value.type is GsqlType.STRING and value.value is not None:
        text = text_of(value).strip()
        length, is_time = read_interval_ns(text), True
        if length is None and text.isascii() and text.isdecimal() and len(text) < 20:
            length, is_time = int(text), False
    elif value.type not in (GsqlType.INT, GsqlType.INTERVAL):
        length = None
    if not isinstance(length, int):
        got = repr(text_of(value)[:40]) if value.type is GsqlType.STRING else value.type.value
        message = f"invalid {what}: expected a length, got {got}"
        remedy = "write a whole number, or a number and a unit: 18, '18 sec', '5 min'"
        raise TypeMismatchError(message, position=extent.position, remedy=remedy)
    if length < 1:
        message = f"invalid {what}: expected a length above 0, got {length}"
        raise TypeMismatchError(message, position=extent.position)
    found = _in_unit(length, what, column, extent.position, is_time=is_time)
    if found * (column.unit_ns or 1) > MAX_LENGTH:
        raise _too_long(what, extent.position)
    return found


def _constant(extent: nodes.Extent, substitutes: Substitutes) -> Literal:
    """Return the value of a length; a name in quotes is a parameter, else an entry of DEFINE."""
    owner = substitutes.query
    if isinstance(extent, nodes.ParameterReference) and owner is not None:
        is_declared = any(entry.name == extent.name for entry in owner.params)
        if not is_declared and any(entry.name == extent.name for entry in owner.define):
            return substitutes.definition(nodes.Definition(extent.name, position=extent.position))
    return substitutes.constant(extent)


def _in_unit(
    length: int, what: str, column: OrderingColumn, position: Position, *, is_time: bool
) -> int:
    """Return a length in the unit of the column, from nanoseconds or a number without a unit."""
    if column.unit_ns is None or column.bare_ns is None:
        if is_time:
            message = f"invalid {what}: {_named(column)} does not count time"
            remedy = "write a whole number, in the unit of the column"
            raise TypeMismatchError(message, position=position, remedy=remedy)
        return length
    found = Fraction(length if is_time else length * column.bare_ns, column.unit_ns)
    if found.denominator != 1:
        of = write_interval(column.unit_ns)
        message = f"invalid {what}: {_named(column)} counts in steps of {of}"
        remedy = f"write a multiple of '{of}'"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    return int(found)


def _too_long(what: str, position: Position) -> TypeMismatchError:
    message = f"invalid {what}: expected a length of at most 2^62, got more"
    remedy = "that is 146 years in nanoseconds, in which times are counted"
    return TypeMismatchError(message, position=position, remedy=remedy)


def _named(column: OrderingColumn) -> str:
    """Return the name of a column in messages."""
    return "the input" if column.name == WINDOW_TIME else column.name
