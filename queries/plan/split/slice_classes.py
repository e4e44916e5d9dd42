"""Classes of windows: those over the same packets and low-level groups share one slice LFTA.

A class has the slices of all its windows (``Slicing.of``) and the partials of all their
aggregates, so each member generates the identical LFTA, which ``share`` makes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.expressions.expressions import PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.split.border import Border
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import WindowGroupBy
    from gscope.queries.plan.split.layers import Site
    from gscope.queries.plan.windows.slicing import Slicing
    from gscope.queries.plan.windows.window import Window
    from gscope.queries.plan.windows.window_plan import WindowPlan

MAX_EDGES = 64
"""The most edges of several windows, so that no query set makes slice numbers arbitrarily
costly."""

MAX_REFINEMENT = 64
"""How many times as many slices a window may get by sharing as it has alone.

A window of a day would otherwise wait for 86,400 slices because of one that slides by a second.
"""

_CLOCK = tuple(PacketField(n, GsqlType.INT, is_nullable=False) for n in ("time", "time_ns"))
"""The clock of packets in seconds and in nanoseconds; any other term is a unit of its own."""


@dataclass(frozen=True, slots=True)
class SliceClass:
    """Windows that one slice LFTA serves.

    Attributes:
        members: the windows, in the order of their queries.
        slicing: their slices, in the unit of ``on``.
        on: the ordering field.
        unit_ns: the nanoseconds of a unit of ``on``.
    """

    members: tuple[WindowGroupBy, ...]
    slicing: Slicing
    on: Expression
    unit_ns: int | None

    def window(self, member: WindowGroupBy) -> Window:
        """Return the window of ``member`` in the unit of ``on``."""
        return _scaled(member, self.unit_ns)


def slice_classes(
    windows: Iterable[tuple[Site, WindowGroupBy]], plan: WindowPlan
) -> list[SliceClass]:
    """Return the classes of windows, each of them in one class.

    Args:
        windows: the windows that LFTAs can fold, each with the site of its LFTA.
        plan: which of them share.
    """
    classes: list[_OpenClass] = []
    found: set[WindowGroupBy] = set()
    for site, group in windows:
        if group in found:
            continue
        groups = _low_groups(site, group)
        joined = (
            c for c in classes if plan.shares and c.groups == groups and c.admits(group, plan)
        )
        home = next(joined, None)
        if home is None:
            home = _OpenClass(groups, [])
            classes.append(home)
        home.members.append(group)
        found.add(group)
    return [each.closed(plan) for each in classes]


def _low_groups(site: Site, group: WindowGroupBy) -> object:
    """Return what is equal for windows whose LFTAs differ in slices and partials only."""
    border = Border()
    for key in group.keys:
        border.lift(key.expression, key.name)
    for call in group.aggregates:
        entry = AGGREGATES[call.function]
        if entry.joins_key:
            border.ship(entry.joined(call.arguments))
    return (
        site.protocol,
        site.interfaces,
        site.predicate,
        frozenset(border.shipped),
        border.has_interface,
        group.on in _CLOCK or group.on,
    )


@dataclass(frozen=True, slots=True)
class _OpenClass:
    """A class to which windows are still added.

    Attributes:
        groups: what its members have in common.
        members: the windows so far.
    """

    groups: object
    members: list[WindowGroupBy]

    def admits(self, group: WindowGroupBy, plan: WindowPlan) -> bool:
        """Return whether the slices of the class with ``group`` suit each of its windows.

        Their number must not exceed 64 bits: with at most one edge in each nanosecond it is about
        the time, or below.
        """
        closed = _closed([*self.members, group], plan)
        rate = closed.slicing.rate
        is_fine = closed.unit_ns in (None, 1)
        if len(closed.slicing.edges) > MAX_EDGES or (is_fine and rate > 1):
            return False
        alone = (plan.slicing([closed.window(member)]).rate for member in closed.members)
        return rate <= MAX_REFINEMENT * min(alone)

    def closed(self, plan: WindowPlan) -> SliceClass:
        """Return the class."""
        return _closed(self.members, plan)


def _closed(members: Sequence[WindowGroupBy], plan: WindowPlan) -> SliceClass:
    """Return the class of ``members``, in the finest of their units."""
    first = min(members, key=lambda member: member.unit_ns or 0)
    slicing = plan.slicing([_scaled(member, first.unit_ns) for member in members])
    return SliceClass(tuple(members), slicing, first.on, first.unit_ns)


def _scaled(member: WindowGroupBy, unit_ns: int | None) -> Window:
    """Return the window of ``member`` in a unit that is as fine as its own, or finer."""
    if member.unit_ns is None or unit_ns is None or member.unit_ns == unit_ns:
        return member.window
    return member.window.scaled(member.unit_ns // unit_ns)
