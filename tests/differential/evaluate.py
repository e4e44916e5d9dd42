"""What the queries of ``syntax.py`` mean.

Plain Python over lists of dictionaries, all rows at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.differential.aggregates import aggregated, running
from tests.differential.epochs import falls
from tests.differential.expressions import holds, truth, value_of
from tests.differential.firsts import EPOCH, first_rows
from tests.differential.joins import joined
from tests.differential.sliding import WINDOW_TIME
from tests.differential.syntax import Group, Join, Merge, Query, Scan, Select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tests.differential.sliding import Window
    from tests.differential.syntax import Expression, Named, Readable, Source, Value

Row = dict[str, Any]
Rows = list[Row]

_MEMBERS: dict[str, Callable[[Row], bool]] = {
    "PKT": lambda packet: True,
    "IP": lambda packet: "ipversion" in packet,
    "IPV4": lambda packet: packet.get("ipversion") == 4,
    "IPV6": lambda packet: packet.get("ipversion") == 6,
    "TCP": lambda packet: packet.get("protocol") == 6,
    "UDP": lambda packet: packet.get("protocol") == 17,
    "ARP": lambda packet: "op" in packet,
}
"""Which packets belong to a protocol."""


class Reference:
    """Answers queries over ``packets``, a list of decoded packets for each interface."""

    def __init__(self, packets: Mapping[str, Sequence[Row]]) -> None:
        self._packets = packets
        self._known: dict[str, Rows] = {}

    def rows(self, source: Readable) -> Rows:
        """All rows of a query, or all packets of a protocol; a NULL may be missing."""
        if isinstance(source, Scan):
            is_member = _MEMBERS[source.protocol]
            return [p for i in source.interfaces for p in self._packets[i] if is_member(p)]
        if source.name not in self._known:
            self._known[source.name] = first_rows(source, self._answer(source))
        return self._known[source.name]

    def _answer(self, query: Query) -> Rows:
        match query:
            case Select():
                return self._select(query)
            case Group():
                if query.window is not None:
                    return self._windows(query, query.window)
                return self._group(query) if query.closing is None else self._running(query)
            case Merge():
                names = [field.name for field in query.fields]
                return [
                    dict(zip(names, (row.get(f.name) for f in source.fields), strict=True))
                    for source in query.inputs
                    for row in self.rows(source)
                ]
            case _:
                raise AssertionError(query)

    def _chosen(self, source: Source, where: Expression | None) -> list[tuple[Row, ...]]:
        """The tuples that a SELECT is about; of a join one row of each side."""
        if isinstance(source, Join):
            left, right = (self.rows(one) for one in source.inputs)
            return list(joined(source, left, right))
        return [(row,) for row in self.rows(source) if where is None or holds(where, (row,))]

    def _select(self, query: Select) -> Rows:
        rows = [_columns(query.columns, row) for row in self._chosen(query.source, query.where)]
        return list({tuple(r.values()): r for r in rows}.values()) if query.is_distinct else rows

    def _group(self, query: Group) -> Rows:
        groups: dict[tuple[Value, ...], tuple[Row, list[tuple[Row, ...]]]] = {}
        for row in self._chosen(query.source, query.where):
            keys = _columns(query.keys, row)
            groups.setdefault(tuple(keys.values()), (keys, []))[1].append(row)
        if not query.keys:
            # A group without keys is there even of no rows.
            groups.setdefault((), ({}, []))
        answers: Rows = []
        for keys, members in groups.values():

            def of_group(
                part: Expression, keys: Row = keys, members: list[tuple[Row, ...]] = members
            ) -> Value:
                return keys[part.text] if part.op == "key" else aggregated(part, members)

            if query.having is None or truth(value_of(query.having, (), of_group)):
                answers.append(
                    {c.name: value_of(c.expression, (), of_group) for c in query.columns}
                )
                if query.epoch is not None:
                    epoch = query.keys[query.epoch]
                    sign = -1 if falls(epoch.expression) else 1
                    answers[-1][EPOCH] = sign * keys[epoch.name]
        return answers

    def _windows(self, query: Group, window: Window) -> Rows:
        """Groups of each window that holds a row, in the order of the windows' ends."""
        windows: dict[
            tuple[int, int], dict[tuple[Value, ...], tuple[Row, list[tuple[Row, ...]]]]
        ] = {}
        for row in self._chosen(query.source, query.where):
            keys = _columns(query.keys, row)
            for edges in window.holding(row[0][window.on.name]):
                groups = windows.setdefault(edges, {})
                groups.setdefault(tuple(keys.values()), (keys, []))[1].append(row)
        answers: Rows = []
        for edges in sorted(windows, key=lambda one: one[1]):
            start, end = (edge * window.scale for edge in edges)
            of_window = {"window_start": start, "window_end": end}
            for own, members in windows[edges].values():
                keys = own | of_window

                def of_group(
                    part: Expression, keys: Row = keys, members: list[tuple[Row, ...]] = members
                ) -> Value:
                    return keys[part.text] if part.op == "key" else aggregated(part, members)

                if query.having is None or truth(value_of(query.having, (), of_group)):
                    answers.append(
                        {c.name: value_of(c.expression, (), of_group) for c in query.columns}
                    )
                    answers[-1] |= {EPOCH: end, WINDOW_TIME: end - 1}
        return answers

    def _running(self, query: Group) -> Rows:
        """Groups by the keys without the epoch.

        Each lives until ``closing`` holds at an epoch's end.
        """
        assert query.closing is not None
        assert query.epoch is not None
        name = query.keys[query.epoch].name
        epochs: dict[int, dict[tuple[Value, ...], list[tuple[Row, ...]]]] = {}
        for row in self._chosen(query.source, query.where):
            keys = _columns(query.keys, row)
            epochs.setdefault(keys.pop(name), {}).setdefault(tuple(keys.values()), []).append(row)
        names = [key.name for key in query.keys if key.name != name]
        lives: dict[tuple[Value, ...], list[list[tuple[Row, ...]]]] = {}
        answers: Rows = []
        last = max([*epochs, *self._last_epoch(query)], default=0)
        for epoch in range(min(epochs, default=last + 1), last + 1, query.step):
            for life in lives.values():
                life.append([])
            for values, members in epochs.get(epoch, {}).items():
                lives.setdefault(values, [[]])[-1] = members
            for values, life in list(lives.items()):
                keys = {name: epoch, **dict(zip(names, values, strict=True))}

                def of_group(
                    part: Expression, keys: Row = keys, life: list[list[tuple[Row, ...]]] = life
                ) -> Value:
                    return keys[part.text] if part.op == "key" else running(part, life)

                if query.having is None or truth(value_of(query.having, (), of_group)):
                    answers.append(
                        {c.name: value_of(c.expression, (), of_group) for c in query.columns}
                    )
                    answers[-1][EPOCH] = epoch
                if truth(value_of(query.closing, (), of_group)):
                    del lives[values]
        return answers

    def _last_epoch(self, query: Group) -> list[int]:
        """The epoch in which the clock stood at the end."""
        assert query.epoch is not None
        epoch = query.keys[query.epoch].expression
        clocks = self._clocks(query.source)
        return [] if clocks is None else [value_of(epoch, clocks)]

    def _clocks(self, source: Source) -> tuple[Row, ...] | None:
        """The temporal columns of an imagined last tuple of a source.

        The tuple is of the time of the last packet.
        """
        match source:
            case Scan():
                times = [p["time_ns"] for i in source.interfaces for p in self._packets[i]]
                if not times:
                    return None
                last = max(times)
                return ({"time": last // 10**9, "timestamp": last, "time_ns": last},)
            case Select():
                clock = self._clocks(source.source)
                if clock is None:
                    return None
                ordered = {f.name for f in source.fields if f.unit_ns}
                return (_columns([c for c in source.columns if c.name in ordered], clock),)
            case Group():
                clock = self._clocks(source.source)
                if clock is None or source.epoch is None:
                    return None
                epoch = source.keys[source.epoch]
                value = value_of(epoch.expression, clock)
                return (
                    {
                        f.name: value_of(c.expression, (), lambda _: value)
                        for f, c in zip(source.fields, source.columns, strict=True)
                        if f.unit_ns
                    },
                )
            case Merge():
                at = source.position
                rows = [(s, self._clocks(s)) for s in source.inputs]
                values = [row[0][s.fields[at].name] for s, row in rows if row is not None]
                return ({source.fields[at].name: max(values)},) if values else None
            case Join():
                return self._joined_clocks(source)
        message = f"{source} has no clock"
        raise TypeError(message)

    def _joined_clocks(self, join: Join) -> tuple[Row, ...] | None:
        """Both sides' clocks; a side that may be missing is known by the one that is behind."""
        clocks = [self._clocks(side) for side in join.inputs]
        times = join.equalities[0]
        if clocks[0] is None or clocks[1] is None or any(t.op != "column" for t in times):
            return None
        values = [value_of(time, (clocks[0][0], clocks[1][0])) for time in times]
        may_miss = (join.kind in ("right", "full"), join.kind in ("left", "full"))
        return tuple(
            {time.text: min(values) if misses else value}
            for time, value, misses in zip(times, values, may_miss, strict=True)
        )


def _columns(columns: Iterable[Named], rows: tuple[Row, ...]) -> Row:
    return {column.name: value_of(column.expression, rows) for column in columns}
