"""The relay's counters for other processes, in the file of a capture's: ``capture/stats.json``."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gscope.capture.process.statistics import (
    SCHEMA,
    STREAM_COUNTERS,
    memory_bytes,
    privileges,
    rated_counters,
)
from gscope.queries.run_folder.recent_counts import RecentCounts
from gscope.queries.run_folder.snapshot import SnapshotFile, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gscope.capture.log.log import StreamLog
    from gscope.capture.relay.held_rows import Shelf
    from gscope.capture.relay.relay_loop import Outlet, RelayLoop
    from gscope.capture.settings import CaptureSettings


class RelayStatistics:
    """Writes the counters of a relay once a second; for one thread at a time.

    Args:
        path: path of the file.
        settings: settings of the relay.
        log: its log.
        unconfined: what confinement leaves out on this system.
        remote: returns who reads the log from other hosts; None if it is not served to them.
    """

    def __init__(
        self,
        path: Path,
        settings: CaptureSettings,
        log: StreamLog,
        *,
        unconfined: Sequence[str] = (),
        remote: Callable[[], dict[str, Any] | None] = lambda: None,
    ) -> None:
        self._remote = remote
        self._settings = settings
        self._log = log
        earlier = read_snapshot(path) or {}
        self._earlier_cpu_s = float(earlier.get("cpu_s", 0.0))
        self._earlier_bytes = {
            str(each.get("name")): int(each.get("received_bytes", 0))
            for each in earlier.get("inputs", ())
        }
        self._began_ns = int(earlier.get("began_ns", time.time_ns()))
        self._unconfined = unconfined
        self._file = SnapshotFile(path)
        self._recent = RecentCounts()
        self._relay: tuple[RelayLoop, Shelf] | None = None

    def follow(self, loop: RelayLoop, shelf: Shelf) -> None:
        """Report the counters of ``loop`` from now on."""
        self._relay = loop, shelf

    def on_turn(self) -> None:
        """Replace the file if that is due."""
        if self._file.is_due:
            self.write()

    def write(self) -> None:
        """Replace the file now."""
        self._file.write(self._document())

    def inputs(self) -> tuple[dict[str, Any], ...]:
        """Return the counters of each input."""
        if self._relay is None:
            return ()
        return tuple(self._input(name) for name in self._relay[0].statuses)

    def streams(self) -> list[dict[str, Any]]:
        """Return the counters of the stream of each LFTA."""
        return (
            [] if self._relay is None else [self._stream(each) for each in self._relay[0].outlets]
        )

    def _document(self) -> dict[str, Any]:
        now_ns, streams = time.time_ns(), self.streams()
        recent = self._recent.since(now_ns, {e["name"]: rated_counters(e) for e in streams})
        return {
            "schema": SCHEMA,
            "written_ns": now_ns,
            "began_ns": self._began_ns,
            "pid": os.getpid(),
            "is_live": True,
            "heartbeat_interval_ns": self._settings.heartbeat_interval_ns,
            "memory_bytes": memory_bytes(),
            "cpu_s": round(self._earlier_cpu_s + time.process_time(), 3),
            "privileges": privileges(self._unconfined),
            "interfaces": [],
            "inputs": list(self.inputs()),
            "streams": [{**each, "recent": recent[each["name"]]} for each in streams],
            "remote": self._remote(),
            "log": {
                **asdict(self._log.stats),
                "budget_bytes": self._settings.log_bytes,
                "open_tuples": self._log.open_tuples,
                "waiting_messages": self._log.waiting_messages,
            },
        }

    def _input(self, name: str) -> dict[str, Any]:
        assert self._relay is not None
        loop, _ = self._relay
        ports = [
            (outlet, key, port)
            for outlet in loop.outlets
            for key, port in outlet.stream.ports.items()
            if key.input == name
        ]
        last_ns = loop.statuses[name].last_heartbeat_ns
        return {
            **loop.statuses[name].fields(),
            "lag_ns": None if last_ns is None else max(0, time.time_ns() - last_ns),
            "streams": sum(not port.is_over for _, _, port in ports),
            "received_tuples_total": sum(port.rows_total for _, _, port in ports),
            "received_answers_total": sum(
                port.rows_total for outlet, _, port in ports if outlet.lfta.answers is not None
            ),
            "received_bytes": self._earlier_bytes.get(name, 0) + loop.readers[name].received_bytes,
            "held_tuples": sum(batch.rows.num_rows for _, _, port in ports for batch in port.held),
            "late_tuples_total": sum(port.late_tuples_total for _, _, port in ports),
            "shed_tuples_total": sum(port.shed_tuples_total for _, _, port in ports),
            "gaps": [
                {"lfta": _shown(outlet), "column": gap.column, "least": gap.least, "end": gap.end}
                for outlet in loop.outlets
                for gap in outlet.stream.gaps
                if gap.host == name
            ],
            "is_awaited": any(key in outlet.stream.holders() for outlet, key, _ in ports),
        }

    def _stream(self, outlet: Outlet) -> dict[str, Any]:
        ports = outlet.stream.ports.values()
        taken = sum(port.rows_total for port in ports)
        emitted = self._log.totals[outlet.name].tuples_total
        return {
            **dict.fromkeys(STREAM_COUNTERS, 0),
            "name": outlet.name,
            "lfta": outlet.lfta.name,
            "interface": outlet.name.rpartition("@")[2],
            "tuples_in_total": taken,
            "tuples_out_total": emitted,
            "late_tuples_total": sum(port.late_tuples_total for port in ports),
            "live_groups": outlet.stream.held_rows,
            "table_slots": 0,
            "table_bytes": 0,
            "selectivity": round(emitted / taken, 6) if taken else None,
        }


def _shown(outlet: Outlet) -> str:
    """Return what the rows of an outlet are called: the query, if they are answers."""
    return outlet.lfta.name if outlet.lfta.answers is None else outlet.lfta.query
