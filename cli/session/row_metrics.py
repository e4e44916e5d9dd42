"""The rows of a run as metrics, beside the run's own sink."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gscope.cli.delivery.delivery import Delivery
from gscope.cli.outlets.row_gauges import RowGauges
from gscope.cli.session.measured_columns import measured_columns
from gscope.queries.run_folder.layout import ROW_METRICS_FILE
from gscope.queries.run_folder.snapshot import SnapshotFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.delivery.delivery import Sink
    from gscope.cli.rundir.run_dir import RunDir
    from gscope.cli.session.session import Session
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.process_events import CommittedOutput


class MeasuredDelivery(Delivery):
    """A delivery that reports rows and the bounds of epochs to gauges.

    Args:
        gauges: what shows the rows.
        program, outputs, sink, further, how: see ``Delivery``.
    """

    def __init__(
        self,
        gauges: RowGauges,
        program: Program,
        outputs: Path,
        sink: Sink,
        *further: Any,
        **how: Any,
    ) -> None:
        super().__init__(program, outputs, _MeasuredSink(sink, gauges), *further, **how)
        self._gauges = gauges

    def on_commit(
        self,
        step: int,
        outputs: Sequence[CommittedOutput],
        bounds: Mapping[str, Mapping[str, float]] | None = None,
        lost: object = None,
    ) -> None:
        """Deliver a step, then show the epochs that it completes."""
        super().on_commit(step, outputs, bounds, lost)
        self._gauges.close_epochs(bounds or {})

    def on_bounds(self, bounds: Mapping[str, Mapping[str, float]]) -> None:
        """Deliver held rows, then show the epochs that the bounds complete."""
        super().on_bounds(bounds)
        self._gauges.close_epochs(bounds)

    def finish(self, *, has_ended: bool = True) -> None:
        """Deliver what is held, and show no rows any more."""
        super().finish(has_ended=has_ended)
        self._gauges.end()


class _MeasuredSink:
    """Writes rows to a sink and to gauges; see ``Sink``."""

    def __init__(self, sink: Sink, gauges: RowGauges) -> None:
        self._sink = sink
        self._gauges = gauges
        self.begin = sink.begin
        self.settle = sink.settle
        self.publish = sink.publish
        self.close = sink.close

    def write(self, query: str, table: pa.Table) -> None:
        """Write rows of ``query``."""
        self._sink.write(query, table)
        self._gauges.take(query, table)


def delivery_of(session: Session, program: Program, run_dir: RunDir) -> Callable[..., Delivery]:
    """Return what makes the delivery of a run, whose rows its endpoint serves if it is to."""
    columns = measured_columns(session, program)
    if not columns or session.show_rows is None:
        return Delivery
    gauges = RowGauges(
        columns,
        session.config.metrics_series,
        SnapshotFile(run_dir.path / ROW_METRICS_FILE),
        is_resumed=run_dir.resumed is not None,
    )
    session.show_rows(gauges.collect)
    return partial(MeasuredDelivery, gauges)
