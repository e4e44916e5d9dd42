"""The rows of the latest complete epoch of results, as gauges of Prometheus.

An epoch is complete when the HFTA job promises that no later step has rows of it. The gauges are
replaced as a whole then, by nothing if the epoch has no rows: a series whose key is not in the
latest epoch is gone. A scrape in another thread sees one epoch of a result, never parts of two.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.columns import as_text, flat
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prometheus_client.core import GaugeMetricFamily

    from gscope.cli.outlets.gauge_columns import GaugeColumns
    from gscope.queries.run_folder.snapshot import SnapshotFile

SCHEMA = 1

_SECOND_NS = 1_000_000_000
_OPEN_EPOCHS = 8
"""Epochs of a result that are kept until one is complete: the latest ones."""

BEYOND_LIMIT, REPEATED, LATE, TIMELESS = "limit", "repeated", "late", "no_time"
"""Why a row is left out: too many series, its labels are those of another row of its epoch, its
epoch was complete, or it has none."""

_Values = tuple[float | None, ...]
_Rows = dict[tuple[str, ...], _Values]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown of a result.

    Attributes:
        epoch: the latest complete epoch, in the unit of its column; None before there is one.
        rows: the values of the gauges, by the labels.
    """

    epoch: int | None = None
    rows: Mapping[tuple[str, ...], _Values] = field(default_factory=dict)


class RowGauges:
    """Keeps the latest complete epoch of results; takes rows in one thread, shows them in others.

    Args:
        results: the results and their columns.
        most_series: the limit of the series of each result.
        snapshot: where the status of the run finds the counters.
        is_resumed: whether rows may have been delivered by a process before this one: the first
            epoch that is complete is not shown then, because rows of it may be missing here.
    """

    def __init__(
        self,
        results: Sequence[GaugeColumns],
        most_series: int,
        snapshot: SnapshotFile,
        *,
        is_resumed: bool = False,
    ) -> None:
        self._results = {each.query: each for each in results}
        self._most_rows = {
            each.query: most_series // len(each.gauges) for each in self._results.values()
        }
        self._snapshot = snapshot
        self._open: dict[str, dict[int, _Rows]] = {query: {} for query in self._results}
        self._left_out: dict[str, Counter[str]] = {query: Counter() for query in self._results}
        self._complete: dict[str, int] = {}
        self._awaits_first = set(self._results) if is_resumed else set()
        self._shown = dict.fromkeys(self._results, _Shown())
        self._snapshot.write(self._statistics())

    def take(self, query: str, table: pa.Table) -> None:
        """Keep the rows of a readable table until their epochs are complete."""
        result = self._results.get(query)
        if result is None or not table.num_rows:
            return
        epochs = pc.cast(flat(table[result.epoch]), pa.int64())
        for epoch in pc.unique(epochs).to_pylist():
            if epoch is None:
                self._left_out[query][TIMELESS] += epochs.null_count
                continue
            rows = table.filter(pc.equal(epochs, epoch))
            latest = self._complete.get(query)
            if latest is not None and epoch <= latest:
                self._left_out[query][LATE] += rows.num_rows
            else:
                self._add(result, self._open[query].setdefault(epoch, {}), rows)
        kept = self._open[query]
        for epoch in sorted(kept)[:-_OPEN_EPOCHS]:
            del kept[epoch]

    def close_epochs(self, bounds: Mapping[str, Mapping[str, float]]) -> None:
        """Show the latest epochs that ``bounds`` make complete.

        Args:
            bounds: for each result and temporal column, the bound below which no later step has
                rows; see ``Delivery.on_commit``.
        """
        is_changed = False
        for query, result in self._results.items():
            bound = bounds.get(query, {}).get(result.epoch, -math.inf)
            if not math.isfinite(bound):
                continue
            latest = (math.ceil(bound) - 1) // result.step * result.step
            if query not in self._complete or latest > self._complete[query]:
                self._complete[query] = latest
                if query in self._awaits_first:
                    self._awaits_first.remove(query)
                    self._close(query, _Shown(), latest)
                else:
                    self._close(query, _Shown(latest, self._open[query].get(latest, {})), latest)
                is_changed = True
        if is_changed:
            self._snapshot.write(self._statistics())

    def end(self) -> None:
        """Show nothing more: the run has ended."""
        for query in self._results:
            self._close(query, _Shown(self._shown[query].epoch), math.inf)
        self._snapshot.write(self._statistics())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics of this moment."""
        from prometheus_client.core import GaugeMetricFamily

        shown = dict(self._shown)
        times = GaugeMetricFamily(
            "gscope_rows_epoch_timestamp_seconds",
            "Time of the latest complete epoch, whose rows the metrics gscope_row_… show.",
            labels=("query",),
        )
        for query, each in shown.items():
            result = self._results[query]
            if each.epoch is not None:
                times.add_metric((query,), each.epoch * result.unit_ns / _SECOND_NS)
            names = [label.name for label in result.labels]
            for place, gauge in enumerate(result.gauges):
                made = GaugeMetricFamily(gauge.name, gauge.meaning, labels=names)
                for labels, values in each.rows.items():
                    value = values[place]
                    if value is not None:
                        made.add_metric(labels, value)
                yield made
        yield times

    def accounts(self) -> list[dict[str, Any]]:
        """Return what is shown of each result, and the rows left out since the process began."""
        return [
            {
                "name": query,
                "epoch": shown.epoch,
                "epoch_ns": (
                    None if shown.epoch is None else shown.epoch * self._results[query].unit_ns
                ),
                "series": sum(len(v) - v.count(None) for v in shown.rows.values()),
                "left_out_rows_total": dict(self._left_out[query]),
            }
            for query, shown in self._shown.items()
        ]

    def _add(self, result: GaugeColumns, kept: _Rows, rows: pa.Table) -> None:
        """Add rows of one epoch."""
        left_out, most = self._left_out[result.query], self._most_rows[result.query]
        begin = 0
        while begin < rows.num_rows:
            room = most - len(kept)
            if room <= 0:
                left_out[BEYOND_LIMIT] += rows.num_rows - begin
                return
            piece = rows.slice(begin, room)
            begin += piece.num_rows
            for labels, values in zip(*_pieces(result, piece), strict=True):
                if labels in kept:
                    left_out[REPEATED] += 1
                else:
                    kept[labels] = values

    def _close(self, query: str, shown: _Shown, below: float) -> None:
        self._shown[query] = shown
        kept = self._open[query]
        for epoch in [epoch for epoch in kept if epoch <= below]:
            del kept[epoch]

    def _statistics(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "written_ns": time.time_ns(), "results": self.accounts()}


def _pieces(result: GaugeColumns, table: pa.Table) -> tuple[list[tuple[str, ...]], list[_Values]]:
    """Return the labels and the values of rows; a label that is NULL is empty."""
    labels = [
        [text or "" for text in as_text(flat(table[each.column])).to_pylist()]
        for each in result.labels
    ]
    values = []
    for gauge in result.gauges:
        column = flat(table[gauge.column])
        if gauge.is_time:
            column = pc.cast(column, pa.int64())
        unit = _SECOND_NS if gauge.is_time else 1
        values.append([None if v is None else v / unit for v in column.to_pylist()])
    rows: list[tuple[str, ...]] = list(zip(*labels, strict=True)) or [()] * table.num_rows
    return rows, list(zip(*values, strict=True))
