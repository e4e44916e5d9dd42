"""Windows, slices and what they cost, as text."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.scalar.clock_units import SECOND_NS
from gscope.queries.gsql.literals import write_interval
from gscope.queries.plan.program import StreamInput
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.plan.windows.slicing import Slicing
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.plan.program import Lfta, Program
    from gscope.queries.plan.windows.window import Window

_MOST_LENGTHS = 24
"""Slices of a period that are listed; of more only the number is shown."""


def show_window(window: Window, unit_ns: int | None) -> str:
    """Return a window as a query writes it: ``[RANGE '18 sec' SLIDE '15 sec']``."""
    match window:
        case SlidingWindow(range=length, slide=slide):
            return f"[RANGE {_quoted(length, unit_ns)} SLIDE {_quoted(slide, unit_ns)}]"
        case RepeatedSlices(lengths=lengths):
            return f"[SLICES {', '.join(_quoted(each, unit_ns) for each in lengths)}]"


def show_slices(slicing: Slicing, unit_ns: int | None) -> str:
    """Return the lengths of the slices of one period, or how many there are."""
    lengths = slicing.vector(_MOST_LENGTHS)
    period = _length(slicing.period, unit_ns)
    if lengths is None:
        number = slicing.rate * slicing.period
        return f"at most {number} in each period of {period}"
    return ", ".join(_length(each, unit_ns) for each in lengths)


def window_state_bound(node: WindowNode) -> str:
    """Return what bounds the rows that a window keeps, in one sentence."""
    longest = _length(node.window.longest, node.unit_ns)
    if node.slices is None:
        overlap = node.window.overlap
        text = f"rows of the last {longest} wait on disk, none in memory; each is read "
        if overlap <= 1:
            return f"{text}once"
        text += f"again for each of the {overlap} windows that hold it"
        whole = [a for a in node.aggregates if not AGGREGATES[a.function].has_partials(a.arguments)]
        if whole:
            names = ", ".join(aggregate.name for aggregate in whole)
            text += f", because no partials of slices add up to {names}"
        return text
    most = node.slices.slicing.most_within(node.window)
    return (
        f"slices of the last {longest} wait on disk, at most {most} with a row for each of their "
        "groups, and a row for each live group; a slice is read when it enters a window, leaves "
        "it, and at most once in between"
    )


@dataclass(frozen=True, slots=True)
class SliceCosts:
    """What the slices of an LFTA cost, beside windows that it would fold whole.

    Attributes:
        queries: the nodes that assemble windows from the slices.
        slices: the lengths of the slices in turn.
        edges: the slices in a second (β), or in a unit of the ordering column.
        windows: the windows of all queries in the same time (Σ 1/s).
        alone: the slices of all queries in the same time if each had its own.
        per: the time.
    """

    queries: tuple[str, ...]
    slices: str
    edges: Fraction
    windows: Fraction
    alone: Fraction
    per: str

    @property
    def text(self) -> str:
        """The rates of slices and windows, beside each other."""
        text = (
            f"β = {_rate(self.edges)} slices {self.per} for Σ 1/s = {_rate(self.windows)} windows"
        )
        if len(self.queries) > 1:
            text += f", unshared {_rate(self.alone)} slices"
        return text


def slice_costs(program: Program, lfta: Lfta) -> SliceCosts | None:
    """Return the costs of the slices of ``lfta``; None if it folds none."""
    nodes = [
        node
        for node in program.nodes
        if isinstance(node, WindowNode) and node.input == StreamInput(lfta.name)
    ]
    slices = [node.slices for node in nodes if node.slices is not None and node.slices.is_merged]
    if not slices:
        return None
    slicing, unit_ns = slices[0].slicing, nodes[0].unit_ns
    lengths = slicing.vector(_MOST_LENGTHS)
    edges = slicing.rate if lengths is None else Fraction(len(lengths), slicing.period)
    scale = Fraction(1) if unit_ns is None else Fraction(SECOND_NS, unit_ns)
    windows = sum((_windows_in_unit(node.window) for node in nodes), Fraction(0))
    alone = sum((Slicing.of([node.window]).rate for node in nodes), Fraction(0))
    return SliceCosts(
        queries=tuple(node.query for node in nodes),
        slices=show_slices(slicing, unit_ns),
        edges=edges * scale,
        windows=windows * scale,
        alone=alone * scale,
        per="for each unit" if unit_ns is None else "a second",
    )


def _windows_in_unit(window: Window) -> Fraction:
    match window:
        case SlidingWindow(slide=slide):
            return Fraction(1, slide)
        case RepeatedSlices(lengths=lengths):
            return Fraction(len(lengths), window.period)


def _rate(value: Fraction) -> str:
    return f"{float(value):.4g}"


def _length(length: int, unit_ns: int | None) -> str:
    """Return a length in the unit of an ordering column: ``18 sec``; without a unit ``18``."""
    return str(length) if unit_ns is None else write_interval(length * unit_ns)


def _quoted(length: int, unit_ns: int | None) -> str:
    text = _length(length, unit_ns)
    return text if unit_ns is None else f"'{text}'"
