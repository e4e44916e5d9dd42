"""The streams of one LFTA on all inputs, merged into one stream; without network, disk or clock.

Each stream of an input has a *port*. Rows are held until no port can have further rows of their
epoch: until the least of the ports' punctuations has passed it. Then they are released, those of
equal keys as one. The rows of a selection are released as they come.

The state after a release says which messages of each input went into it, so that a relay that is
killed continues after these. A message whose rows were released in part is received again; its rows
below the promised bounds are then known to be released, if the message had been received before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gscope.capture.log.stream_rows import ARROW_TYPES, relay_schema
from gscope.capture.relay.partials import merged_groups
from gscope.capture.relay.ports import HeldBatch, Port, PortKey
from gscope.capture.relay.relay_state import MergeState, PortState
from gscope.queries.expressions.types import Direction
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.gaps import HostGap, with_gap
from gscope.queries.streams.losses import united
from gscope.queries.streams.messages import Punctuation, promised_name
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gscope.capture.relay.ports import Bounds, Rows
    from gscope.queries.plan.program import Lfta
    from gscope.queries.streams.losses import Losses, LostRows
    from gscope.queries.streams.messages import Extent


MOST_LOGS = 8
"""Logs of an input that are remembered: it may return to one, as after a failover and back."""


@dataclass(frozen=True, slots=True)
class Release:
    """What the merged stream emits next.

    Attributes:
        rows: the rows; None if there are none.
        punctuations: what the stream promises after them.
        clock_ns: the least clock of the inputs' heartbeats.
        state: the state in which these rows are released.
        is_last: whether the stream ends with it.
    """

    rows: pa.Table | None
    punctuations: tuple[Punctuation, ...]
    clock_ns: int
    state: MergeState
    is_last: bool = False


class MergedStream:
    """The streams of ``lfta`` on all inputs, as one.

    Args:
        lfta: the LFTA.
        inputs: names of all inputs.
        state: where an earlier relay stopped; None for the beginning.
        limit_rows: rows that one release merges, unless a single epoch or batch has more.
    """

    def __init__(
        self,
        lfta: Lfta,
        inputs: Iterable[str],
        state: MergeState | None = None,
        limit_rows: int = 1 << 21,
    ) -> None:
        state = state or MergeState()
        self.lfta = lfta
        self.ports: dict[PortKey, Port] = {}
        self.absent: set[str] = set()
        self.promised: Bounds = dict(state.bounds)
        self._limit_rows = limit_rows
        self._clocks: dict[PortKey, int] = {}
        self._clock_ns = 0
        self._directions = {
            promised_name(column): (column.name, column.ordering.direction is Direction.DECREASING)
            for column in lfta.schema.temporal
            if pa.types.is_int64(ARROW_TYPES[column.type])
        }
        self._epoch = next(
            (name for name, (column, _) in self._directions.items() if column == lfta.epoch), None
        )
        # The promise in whose column gaps are noted.
        self._marking = self._epoch or next(iter(self._directions), None)
        self._unknown = set(inputs)
        for each in state.ports:
            key = PortKey(each.input, each.log, each.stream)
            self._unknown.discard(key.input)
            self.ports[key] = Port(
                next=each.cursor,
                judged=each.judged,
                bounds=dict(state.bounds),
                has_ended=each.has_ended,
                rows_total=each.rows_total,
                late_tuples_total=each.late_tuples_total,
                shed_tuples_total=each.shed_tuples_total,
            )
        self.gaps = state.gaps
        self._stored, self._losses = state, state.losses
        self._taken_below: Bounds | None = None
        self._is_done = False

    # -- messages of the inputs ------------------------------------------------------------------

    def on_described(
        self,
        name: str,
        log: str,
        streams: Mapping[str, int],
        begun: Mapping[str, int] | None = None,
    ) -> dict[str, int]:
        """Note the streams of an input; return for each the next message to receive.

        Nothing more is expected of an earlier log of the input, until that is described again.

        Args:
            name: the input.
            log: identity of its log.
            streams: its streams, with the number of the first message to read of each.
            begun: the number of the first message of the process that captures, by stream.
        """
        self._unknown.discard(name)
        found = {PortKey(name, log, stream) for stream in streams}
        for key, port in self.ports.items():
            port.is_left = port.is_left or key.input == name
        for key in sorted(found):
            former = self._former(key)
            # The latest log comes last.
            port = self.ports[key] = self.ports.pop(key, Port(left_bounds=former))
            port.is_left = False
            port.next = max(port.next, streams[key.stream])
            first = 0 if begun is None else begun.get(key.stream, 0)
            if port.next <= first and (first or port.left_bounds is not None):
                port.restart = first
        self._forget_logs(name)
        return {key.stream: self.ports[key].next for key in found}

    def _former(self, key: PortKey) -> Bounds | None:
        """Return what a stream had promised in earlier logs of its input; None without any."""
        if key in self.ports:
            return None
        former = [
            port.bounds
            for other, port in self.ports.items()
            if (other.input, other.stream) == (key.input, key.stream)
        ]
        return former[-1] if former else None

    def _forget_logs(self, name: str) -> None:
        """Forget all but the latest logs of an input, whose streams take over the counts."""
        keys = [key for key in self.ports if key.input == name]
        latest = list(dict.fromkeys(key.log for key in keys))[-MOST_LOGS:]
        for key in keys:
            if key.log not in latest and not self.ports[key].held:
                self._losses = united((self._losses, self.ports[key].losses))
                self.ports[keys[-1]].add_counts(self.ports.pop(key))

    def on_batch(self, key: PortKey, sequence: int, rows: Rows) -> None:
        """Hold the rows of a batch."""
        port = self._advanced(key, sequence)
        if port is None:
            rows.discard()
            return
        below = self._below(rows)
        if sequence >= port.judged:
            port.rows_total += rows.num_rows
            port.late_tuples_total += below
        if below < rows.num_rows:
            port.held.append(HeldBatch(sequence, rows, dict(self.promised)))
        else:
            rows.discard()

    def on_shed(self, key: PortKey, sequence: int, tuples: int, lost: LostRows) -> None:
        """Count rows that the input no longer had."""
        port = self._advanced(key, sequence)
        if port is not None:
            port.shed_tuples_total += tuples
            self._losses = self._losses.with_rows(lost)

    def on_losses(self, key: PortKey, losses: Losses) -> None:
        """Note what is missing from a stream."""
        self.ports[key].losses = losses

    def on_heartbeat(
        self, key: PortKey, sequence: int, punctuations: Iterable[Punctuation], clock_ns: int
    ) -> None:
        """Note what a stream promises."""
        port = self._advanced(key, sequence)
        if port is not None:
            punctuations = tuple(punctuations)
            if port.restart is not None and sequence >= port.restart:
                self._note_restart(key.input, port, punctuations)
            for each in punctuations:
                if each.column in self._directions:
                    known = port.bounds.get(each.column, each.bound)
                    port.bounds[each.column] = max(each.bound, known)
            self._clocks[key] = clock_ns

    def _note_restart(self, name: str, port: Port, promised: Iterable[Punctuation]) -> None:
        """Note that no process of an input captured between two promises of a stream.

        The epoch in which the second one was made is not complete either.
        """
        port.restart = None
        before = port.left_bounds if port.left_bounds is not None else port.bounds
        for each in promised:
            if each.column == self._marking:
                least = before.get(each.column, MIN_TIME_NS)
                gap = HostGap(name, each.column, least, max(least, each.bound) + 1)
                self.gaps = with_gap(self.gaps, gap)

    def on_end(self, key: PortKey, sequence: int) -> None:
        """Note that a stream has ended."""
        port = self._advanced(key, sequence)
        if port is not None:
            port.has_ended = True

    def _advanced(self, key: PortKey, sequence: int) -> Port | None:
        """Return the port of a message that is new; None for one that was received before."""
        port = self.ports[key]
        if sequence < port.next:
            return None
        port.next = sequence + 1
        return port

    # -- what is released ------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether all streams of all inputs have ended."""
        return (
            not self._unknown
            and bool(self.ports)
            and all(port.is_over for port in self.ports.values())
        )

    @property
    def held_rows(self) -> int:
        """Number of rows in batches that are not released as a whole."""
        return sum(batch.rows.num_rows for port in self.ports.values() for batch in port.held)

    def holders(self) -> list[PortKey]:
        """Return the streams that the merged one waits for: those with the least bound."""
        keys = self._waited_for()
        column = self._epoch or next(iter(self._directions), None)
        if keys is None or column is None:
            return []
        bounds = {key: self.ports[key].bounds.get(column) for key in keys}
        known = [bound for bound in bounds.values() if bound is not None]
        least = min(known) if len(known) == len(bounds) and known else None
        return [key for key, bound in bounds.items() if bound == least]

    def take(self, *, is_last: bool = False) -> Release | None:
        """Return what can be released now; None if there is nothing new.

        A release is limited in size, so the next call may return more.

        Args:
            is_last: whether to release everything and end, complete or not.
        """
        if self._is_done:
            return None
        is_last = is_last or self.is_over
        bounds = self._reached()
        if self._epoch is not None:
            rows, is_whole = self._take_epochs(self._epoch, bounds, is_last=is_last)
        else:
            rows, is_whole = self._take_batches()
        for port in self.ports.values():
            port.judged = max(port.judged, port.next)
        is_over = is_last and is_whole
        if is_over and not self.is_over:
            self._note_gaps(MAX_TIME_NS)
        if not is_over and bounds != self._taken_below:
            self._promise(bounds)
            self._taken_below = bounds if is_whole and self._epoch is not None else None
        state = self._state()
        if rows is None and state == self._stored and not is_over:
            return None
        self._stored, self._is_done = state, is_over
        punctuations = tuple(Punctuation(name, bound) for name, bound in self.promised.items())
        return Release(rows, punctuations, self._clock_ns, state, is_over)

    def _waited_for(self) -> list[PortKey] | None:
        """Return the streams whose promises count; None while nothing can be promised.

        Absent inputs do not count as long as another one goes on.
        """
        if self._unknown - self.absent:
            return None
        going = [key for key, port in self.ports.items() if not port.is_over]
        present = [key for key in going if key.input not in self.absent]
        return present or going

    def _reached(self) -> Bounds:
        """Return the bounds that all streams have promised."""
        keys = self._waited_for()
        if not keys:
            return {}
        self._clock_ns = max(
            self._clock_ns, min(self._clocks.get(key, self._clock_ns) for key in keys)
        )
        first, *others = (self.ports[key].bounds for key in keys)
        return {
            name: min([bound, *(each[name] for each in others)])
            for name, bound in first.items()
            if name in self._directions and all(name in each for each in others)
        }

    def _promise(self, bounds: Mapping[str, int]) -> None:
        """Raise the promises to ``bounds``, as far as rows that are held allow it."""
        if self._marking is not None and self._marking in bounds:
            self._note_gaps(bounds[self._marking])
        for port in self.ports.values():
            for batch in port.held:
                for extent in batch.rows.extents:
                    bounds = self._held_back(bounds, extent)
        for name, bound in bounds.items():
            self.promised[name] = max(bound, self.promised.get(name, bound))

    def _note_gaps(self, end: int) -> None:
        """Note what is promised, up to ``end``, without rows that absent inputs may still have."""
        name = self._marking
        if name is None:
            return
        before = self.promised.get(name, MIN_TIME_NS)
        for each in self.absent:
            least = max(before, self._promised_by(each, name))
            if least < end:
                self.gaps = with_gap(self.gaps, HostGap(each, name, least, end))

    def _promised_by(self, name: str, column: str) -> int:
        """Return what an input has promised of its streams; all of them, if it has none."""
        if name in self._unknown:
            return MIN_TIME_NS
        ports = [port for key, port in self.ports.items() if key.input == name]
        return min(
            (port.bounds.get(column, MIN_TIME_NS) for port in ports if not port.is_over),
            default=MAX_TIME_NS,
        )

    def _held_back(self, bounds: Mapping[str, int], extent: Extent) -> dict[str, int]:
        least = {extent.column: extent.least, f"-{extent.column}": -extent.greatest}
        return {
            # Rows of a held batch that were below the epoch's bound are released.
            name: bound if name == self._epoch else min(bound, least.get(name, bound))
            for name, bound in bounds.items()
        }

    def _take_epochs(
        self, name: str, bounds: Bounds, *, is_last: bool
    ) -> tuple[pa.Table | None, bool]:
        """Return the merged rows of whole epochs below ``bounds``, and whether that is all of them.

        Args:
            name: the promise of the epoch.
            bounds: what is promised; the bound of the epoch is lowered if that is too much at once.
            is_last: whether all rows are taken, whatever is promised.
        """
        limit = None if is_last else bounds.get(name)
        if not is_last and (limit is None or bounds == self._taken_below):
            return None, True
        end = self._affordable_end(name, limit)
        if end is not None:
            bounds[name] = end
        parts: list[pa.Table] = []
        for port in self.ports.values():
            kept = []
            for batch in port.held:
                if end is None or self._least(batch.rows, name) < end:
                    parts = self._with(parts, self._within(batch, name, end))
                if end is not None and self._greatest(batch.rows, name) >= end:
                    kept.append(batch)
                else:
                    batch.rows.discard()
            port.held = kept
        table = merged_groups(pa.concat_tables(parts), self.lfta) if parts else None
        return table, end == limit

    def _with(self, parts: list[pa.Table], rows: pa.Table) -> list[pa.Table]:
        """Return ``parts`` and ``rows``, merged if they are many: groups recur."""
        if not rows.num_rows:
            return parts
        parts = [*parts, rows]
        if len(parts) > 1 and sum(part.num_rows for part in parts[1:]) > self._limit_rows:
            return [merged_groups(pa.concat_tables(parts), self.lfta)]
        return parts

    def _affordable_end(self, name: str, limit: int | None) -> int | None:
        """Return the bound up to which about ``limit_rows`` rows are held, at most ``limit``."""
        held = [batch.rows for port in self.ports.values() for batch in port.held]
        # Rows below the promised bound are released already.
        floor = self.promised.get(name)
        found = ((self._least(rows, name), rows.num_rows) for rows in held)
        batches = sorted(
            (least if floor is None else max(least, floor), count)
            for least, count in found
            if limit is None or least < limit
        )
        rows = 0
        for least, count in batches:
            if rows and rows + count > self._limit_rows and least > batches[0][0]:
                return least
            rows += count
        return limit

    def _take_batches(self) -> tuple[pa.Table | None, bool]:
        """Return the rows of a selection as they came, and whether all were taken."""
        parts: list[pa.Table] = []
        rows = 0
        is_whole = True
        for port in self.ports.values():
            taken = 0
            for batch in port.held:
                if rows and rows + batch.rows.num_rows > self._limit_rows:
                    is_whole = False
                    break
                parts.append(self._within(batch, None, None))
                rows += batch.rows.num_rows
                batch.rows.discard()
                taken += 1
            del port.held[:taken]
        parts = [part for part in parts if part.num_rows]
        return (pa.concat_tables(parts).combine_chunks() if parts else None), is_whole

    def _within(self, batch: HeldBatch, name: str | None, end: int | None) -> pa.Table:
        """Return the rows of a batch that keep all promises and are below ``end``."""
        table = batch.rows.read()
        floors = dict(batch.floors)
        if name is not None and name in self.promised:
            # What was released of the batch already.
            floors[name] = self.promised[name]
        for promise, bound in floors.items():
            table = self._filtered(table, promise, bound, is_below=False)
        if name is not None and end is not None:
            table = self._filtered(table, name, end, is_below=True)
        return table.select(relay_schema(self.lfta).names)

    def _filtered(self, table: pa.Table, promise: str, bound: int, *, is_below: bool) -> pa.Table:
        column, is_falling = self._directions[promise]
        values = table[column]
        if is_falling:
            mask = pc.greater(values, -bound) if is_below else pc.less_equal(values, -bound)
        else:
            mask = pc.less(values, bound) if is_below else pc.greater_equal(values, bound)
        # A NULL is below no bound.
        mask = pc.fill_null(mask, not is_below)
        return table if pc.all(mask, min_count=0).as_py() else table.filter(mask)

    def _below(self, rows: Rows) -> int:
        """Return how many rows are below what was promised; reads them only if some are."""
        if not any(
            self._least(rows, name) < bound
            for name, bound in self.promised.items()
            if name in self._directions
        ):
            return 0
        table = rows.read()
        for name, bound in self.promised.items():
            table = self._filtered(table, name, bound, is_below=False)
        return int(rows.num_rows - table.num_rows)

    def _least(self, rows: Rows, name: str) -> int:
        """Return the least value of a promise's column, or of its negative, among ``rows``."""
        column, is_falling = self._directions[name]
        extent = next(each for each in rows.extents if each.column == column)
        return -extent.greatest if is_falling else extent.least

    def _greatest(self, rows: Rows, name: str) -> int:
        column, is_falling = self._directions[name]
        extent = next(each for each in rows.extents if each.column == column)
        return -extent.least if is_falling else extent.greatest

    def _state(self) -> MergeState:
        losses = united((self._losses, *(port.losses for port in self.ports.values())))
        return MergeState(dict(self.promised), tuple(self._port_states()), self.gaps, losses)

    def _port_states(self) -> Iterator[PortState]:
        for key, port in self.ports.items():
            yield PortState(
                *key,
                cursor=port.cursor,
                judged=port.judged,
                has_ended=port.is_over and not port.held,
                rows_total=port.rows_total,
                late_tuples_total=port.late_tuples_total,
                shed_tuples_total=port.shed_tuples_total,
            )
