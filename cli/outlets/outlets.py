"""All outlets of a run, and the sink that hands rows to them beside the run's own sink."""

from __future__ import annotations

import io
import secrets
import shutil
import ssl
import time
from typing import TYPE_CHECKING, Any

from gscope.cli.outlets.sender import Sender
from gscope.cli.outlets.spool import Spool
from gscope.engine.sinks.text import write_ndjson
from gscope.errors import GscopeError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.layout import OUTLETS_FOLDER, OUTLETS_STATISTICS_FILE
from gscope.queries.run_folder.snapshot import SnapshotFile
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.config.destinations import Destination
    from gscope.cli.delivery.delivery import Sink
    from gscope.cli.outlets.alerts import Alerts
    from gscope.cli.outlets.outlet import Outlet

PATIENCE_S = 30.0
"""How long the end of a run, and a replay with a full spool, wait for outlets to accept a row."""

_STATE = "outlets"
"""The key of the outlets in the state of the sink."""

_ALERTS = "alerts"
"""The key of the alerts in the state of the outlets."""

_ROWS_AT_ONCE = 1000
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class OpenedOutlet:
    """An outlet and what it is called.

    Attributes:
        name: how reports call it.
        identity: what distinguishes it from others, such as its URL.
        outlet: what sends rows.
    """

    name: str
    identity: str
    outlet: Outlet


class OutletSink:
    """Delivers rows to a sink and to outlets; see ``Sink``.

    Args:
        sink: the run's own sink.
        outlets: where rows are sent as well.
        before: what ``settle`` last returned before the run was killed; {} for a new run.
        folder: the run's folder.
        run: the name of the run.
        budget: the disk space for rows that wait, in bytes.
        is_live: whether the run cannot be repeated: rows are dropped rather than awaited.
        report: shows a sentence to the user.
        alerts: what turns rows of results into events, which are sent instead; None for nothing.
        patience_s: see ``PATIENCE_S``.

    Raises:
        GscopeError: the spool cannot be written, or its records cannot be read.
    """

    def __init__(
        self,
        sink: Sink,
        outlets: Sequence[OpenedOutlet],
        before: Mapping[str, Any],
        folder: Path,
        run: str,
        *,
        budget: int,
        is_live: bool,
        report: Callable[[str], None],
        alerts: Alerts | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._sink = sink
        self._is_live = is_live
        self._report = report
        self._patience_s = patience_s
        known = before.get(_STATE, {})
        self._alerts = alerts
        if alerts is not None:
            alerts.restore(known.get(_ALERTS, {}))
        spool_folder = folder / OUTLETS_FOLDER
        try:
            if not known:
                shutil.rmtree(spool_folder, ignore_errors=True)
            self._token = known.get("token") or secrets.token_hex(8)
            self._spool = Spool(spool_folder, budget, known.get("spool", {}))
            names = _distinct([each.name for each in outlets])
            self._senders = [
                Sender(name, each.identity, each.outlet, self._spool, run, self._token)
                for name, each in zip(names, outlets, strict=True)
            ]
        except OSError as error:
            message = f"cannot keep rows in {spool_folder}: {os_reason(error)}"
            raise GscopeError(message) from error
        self._snapshot = SnapshotFile(folder / OUTLETS_STATISTICS_FILE)
        for sender in self._senders:
            sender.start()

    def accounts(self) -> list[dict[str, Any]]:
        """Return what became of the rows of each outlet, since the run began."""
        return [
            {
                "name": sender.name,
                "sent_rows_total": sender.counters.sent,
                "waiting_rows": sender.waiting,
                "dropped_rows_total": sender.dropped,
                "refused_rows_total": sender.counters.refused,
                "failures_total": sender.counters.failures,
                "outages_total": sender.counters.outages,
                "failure": sender.failure,
            }
            for sender in self._senders
        ]

    def begin(self, query: str, schema: pa.Schema) -> None:
        """Prepare for rows of ``query``."""
        self._sink.begin(query, schema)

    def write(self, query: str, table: pa.Table) -> None:
        """Write rows to the sink, and these or the events of alerts to the spool."""
        self._sink.write(query, table)
        if self._alerts is not None and self._alerts.judges(query):
            self._keep_events(query, self._alerts.take(query, table))
        else:
            for begin in range(0, table.num_rows, _ROWS_AT_ONCE):
                piece = table.slice(begin, _ROWS_AT_ONCE)
                lines = io.BytesIO()
                write_ndjson(piece, lines)
                self._keep(query, lines.getvalue(), piece.num_rows)
        self._notify()

    def advance(self, query: str, bound: int) -> None:
        """Write the events of epochs that are complete to the spool; see ``Delivery``."""
        if self._alerts is not None:
            self._keep_events(query, self._alerts.advance(query, bound))

    def settle(self, *, is_last: bool) -> dict[str, Any] | None:
        """Return the state of the sink and of the spool."""
        of_sink = self._sink.settle(is_last=is_last)
        of_spool = self._spool.state()
        self._notify()
        if not self._is_live:
            self._spool.publish()
        if of_sink is None:
            return None
        state: dict[str, Any] = {"token": self._token, "spool": of_spool}
        if self._alerts is not None:
            state[_ALERTS] = self._alerts.state()
        return {**of_sink, _STATE: state}

    def publish(self) -> None:
        """Show rows to readers and let outlets send them: they are on record."""
        self._sink.publish()
        self._spool.publish()

    def close(self, *, is_complete: bool) -> None:
        """End the answer; if it is complete, wait for outlets as long as one accepts rows."""
        try:
            self._sink.close(is_complete=is_complete)
            if is_complete:
                self._finish_alerts()
                self._wait(self._has_waiting)
        finally:
            for sender in self._senders:
                sender.stop()
            self._spool.close()
            self._notify()
            self._snapshot.write(self._statistics())

    def _finish_alerts(self) -> None:
        """Send the events of the last epochs.

        They are not on record: if the run is killed and resumed now, it sends the same again, with
        the same numbers.
        """
        if self._alerts is not None:
            for query, events in self._alerts.finish():
                self._keep_events(query, events)
            self._spool.state()
            self._spool.publish()

    def _keep_events(self, query: str, events: Sequence[bytes]) -> None:
        for begin in range(0, len(events), _ROWS_AT_ONCE):
            piece = events[begin : begin + _ROWS_AT_ONCE]
            self._keep(query, b"".join(piece), len(piece))

    def _keep(self, query: str, lines: bytes, rows: int) -> None:
        """Append lines to the spool, in a replay once there is space."""
        if not self._is_live:
            self._await_space(len(lines))
        try:
            self._spool.append(query, lines, rows)
        except OSError as error:
            message = f"cannot keep rows in {self._spool.folder}: {os_reason(error)}"
            raise GscopeError(message) from error

    def _await_space(self, more: int) -> None:
        """Wait until ``more`` bytes fit the spool, as long as an outlet accepts rows."""
        if self._spool.is_full(more):
            self._spool.state()
            self._spool.publish()
            self._wait(lambda: self._spool.is_full(more) and self._has_waiting())

    def _has_waiting(self) -> bool:
        return any(sender.waiting for sender in self._senders)

    def _wait(self, is_needed: Callable[[], bool]) -> None:
        """Wait while something is needed and an outlet that has rows accepts some in time."""
        began_s = time.monotonic()
        while is_needed():
            accepted_s = (sender.accepted_s for sender in self._senders if sender.waiting)
            if time.monotonic() - max(began_s, *accepted_s, began_s) > self._patience_s:
                return
            with self._spool.changed:
                self._spool.changed.wait(timeout=0.1)
            self._notify()

    def _notify(self) -> None:
        """Show what the threads have to say, and write the counters."""
        for sender in self._senders:
            while sender.notices:
                self._report(sender.notices.popleft())
        if self._snapshot.is_due:
            self._snapshot.write(self._statistics())

    def _statistics(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "written_ns": time.time_ns(),
            "outlets": self.accounts(),
            "alerts": self._alerts.accounts() if self._alerts is not None else [],
            "spool_bytes": self._spool.size,
        }


def _distinct(names: Sequence[str]) -> list[str]:
    """Return ``names``, of which the second and further equal ones have numbers."""
    return [
        f"{name} ({count})" if (count := names[: at + 1].count(name)) > 1 else name
        for at, name in enumerate(names)
    ]


def opened(destination: Destination) -> Outlet:
    """Return the outlet of a destination, which is not connected yet.

    Raises:
        UsageError: its certificates or its configuration cannot be read, or it needs a package
            that is not installed.
    """
    from gscope.cli.outlets.syslog import SyslogDatagrams, SyslogStream
    from gscope.cli.outlets.webhook import Webhook

    match destination.scheme:
        case "kafka":
            from gscope.cli.outlets.kafka import KafkaTopic

            return KafkaTopic(destination)
        case "http":
            return Webhook(destination)
        case "https":
            return Webhook(destination, _context(None))
        case "syslog":
            return SyslogDatagrams(destination)
        case "syslog+tcp":
            return SyslogStream(destination)
        case _:
            return SyslogStream(destination, _context(destination.options.get("ca")))


def _context(certificates: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=certificates)
    except OSError as error:
        reason = "it holds no certificate" if isinstance(error, ssl.SSLError) else os_reason(error)
        message = f"cannot read the certificates in {certificates}: {reason}"
        raise UsageError(message) from error
