"""The capture daemon's counters for other processes: ``capture/stats.json`` in the run's folder.

Every capture thread records the state of its own interface about once a second; a thread that finds
the file outdated writes it. Counters start with the run: a restarted daemon adds to what the one
before it reported, so what that one counted in its last second is missing.
``docs/status.schema.json`` describes the fields.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gscope.capture.interface.resume_state import caught_up
from gscope.capture.interface.source_state import SourceState
from gscope.capture.interface.summary import UNDECODED, added_by_reason, empty_summary
from gscope.capture.process.confinement.privileges import capabilities, has_no_new_privileges
from gscope.capture.shedding.settings import SheddingSettings
from gscope.queries.run_folder.recent_counts import RecentCounts
from gscope.queries.run_folder.snapshot import SnapshotFile, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gscope.capture.interface.base import Feed
    from gscope.capture.interface.resume_state import ResumeState
    from gscope.capture.interface.summary import InterfaceSummary
    from gscope.capture.lfta.counters import LftaCounters
    from gscope.capture.log.log import StreamLog
    from gscope.capture.settings import CaptureSettings, InterfaceSettings
    from gscope.capture.shedding.load_control import LoadControl

SCHEMA = 1

NOTE_S = 0.9
"""Shortest time between two records of an interface, in seconds."""

PRIVILEGES_S = 30.0
"""Time between two checks of the process's privileges, which read a file for each thread."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

ADDED_UP = (
    "received_packets",
    "received_bytes",
    "dropped_packets",
    "frozen_total",
    "filtered_packets",
    "shed_packets",
    "late_packets",
    "accepted_packets",
    "unread_packets",
    "interruptions_total",
    "heartbeats_total",
    "answers_total",
    "worked_ns",
    "cpu_s",
)
"""Counters to which a restarted daemon adds.

Streams and log keep their counters themselves; the other fields are current values."""

STREAM_COUNTERS = (
    "tuples_in_total",
    "tuples_out_total",
    "evicted_groups_total",
    "without_epoch_tuples_total",
    "out_of_order_tuples_total",
    "late_tuples_total",
    "crashes_total",
    "lost_in_crash_tuples_total",
    "uncaptured_ns_total",
    "live_groups",
)
"""Counters of each stream, as in its heartbeats."""


class CaptureStatistics:
    """The counters that all threads of a capture have recorded.

    Args:
        path: path of the file.
        settings: settings of the capture.
        log: the stream log, for its counters.
        unconfined: what confinement leaves out on this system.
        remote: returns who reads the log from other hosts; None if it is not served to them.
        wall_ns: returns nanoseconds since 1970.
        monotonic: returns seconds.
    """

    def __init__(
        self,
        path: Path,
        settings: CaptureSettings,
        log: StreamLog,
        *,
        unconfined: Sequence[str] = (),
        remote: Callable[[], dict[str, Any] | None] = lambda: None,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._unconfined = unconfined
        self._remote = remote
        self._log = log
        self._settings = settings
        self._wall_ns = wall_ns
        self._monotonic = monotonic
        earlier = read_snapshot(path) or {}
        self._earlier = earlier if earlier.get("schema") == SCHEMA else {}
        self._file = SnapshotFile(path, monotonic)
        self._began_ns = self._earlier.get("began_ns", wall_ns())
        self._interfaces: dict[str, dict[str, Any]] = {}
        self._streams: dict[str, dict[str, Any]] = {}
        self._lost_later: dict[str, int] = {}
        self._noted: dict[str, tuple[float, int]] = {}
        self._recent_packets = RecentCounts()
        self._recent_tuples = RecentCounts()
        self._privileges: tuple[float, dict[str, Any]] | None = None
        self.control: LoadControl | None = None
        self._lock = threading.Lock()

    def resume(self, interface: str, state: ResumeState) -> None:
        """Continue from the last heartbeats of an interface, before its first packet is taken."""
        self._replace_earlier(interface, caught_up(self.earlier(interface), state))
        for stream, counters in state.counters.items():
            self._lost_later[stream] = self._taken_later(stream, counters)

    def on_absent(
        self, interface: InterfaceSettings, state: ResumeState, problem: str = ""
    ) -> None:
        """Keep the last report of an interface that this daemon does not capture.

        Args:
            interface: settings of the interface.
            state: what earlier daemons reported of it.
            problem: why it has ended now; "" if it had ended before.
        """
        device = interface.device.device if interface.device is not None else interface.name
        fields = {
            **_unreported(interface, device, self._wall_ns()),
            **caught_up(self.earlier(interface.name), state),
            "packets_per_second": 0.0,
        }
        if problem:
            damage = list(dict.fromkeys((*fields["damage"], problem)))
            fields |= {"state": "gone", "failure": problem, "damage": damage, "ring_occupancy": 0.0}
        self._replace_earlier(interface.name, fields)
        for stream, counters in state.counters.items():
            later = self._taken_later(stream, counters)
            self._streams[stream] = {
                **_NO_TABLE,
                **_named(self._earlier, "streams", stream),
                **{name: counters.get(name, 0) for name in STREAM_COUNTERS},
                "tuples_in_total": counters.get("tuples_in_total", 0) + later,
                "name": stream,
                "lfta": stream.rpartition("@")[0],
                "interface": interface.name,
            }

    def _taken_later(self, stream: str, counters: Mapping[str, int]) -> int:
        """Return how many packets an earlier daemon took after the heartbeat with ``counters``.

        They are lost. Rows that it emitted meanwhile are not in the log and do not count.
        """
        written = _named(self._earlier, "streams", stream).get("tuples_in_total", 0)
        return max(0, int(written) - counters.get("tuples_in_total", 0))

    def _replace_earlier(self, interface: str, fields: Mapping[str, Any]) -> None:
        others = [each for each in self._earlier.get("interfaces", ()) if each["name"] != interface]
        self._earlier = {
            **self._earlier,
            "interfaces": [*others, {**fields, "name": interface}],
        }

    def earlier(self, interface: str) -> Mapping[str, Any]:
        """Return the last entry of an interface by an earlier daemon of the run; {} if none."""
        return _named(self._earlier, "interfaces", interface)

    def on_turn(self, feed: Feed) -> None:
        """Record the state of an interface if that is due; for the thread that runs it."""
        now_s = self._monotonic()
        noted = self._noted.get(feed.name)
        if noted is None or now_s - noted[0] >= NOTE_S:
            self._note(feed, now_s)
            with self._lock:
                if self._file.is_due:
                    self._write()

    def on_end(self, feed: Feed) -> None:
        """Record the state of an interface at its end."""
        self._note(feed, self._monotonic())
        with self._lock:
            if self._interfaces[feed.name]["state"] == "up":
                self._interfaces[feed.name]["state"] = "ended"
            if self._file.is_due:
                self._write()

    def write(self) -> None:
        """Replace the file now."""
        with self._lock:
            self._write()

    def _note(self, feed: Feed, now_s: float) -> None:
        state, summary = feed.source_state(), feed.current_summary()
        before_s, before = self._noted.get(feed.name, (now_s, 0))
        packets = feed.runtime.interface_counters.packets + feed.late_packets
        self._noted[feed.name] = now_s, packets
        rate = (packets - before) / (now_s - before_s) if now_s > before_s else 0.0
        self._interfaces[feed.name] = {
            **asdict(state),
            **_packets(summary),
            "name": feed.name,
            "packets_per_second": round(rate, 1),
            "heartbeats_total": feed.heartbeats,
            "answers_total": feed.answers_total,
            "worked_ns": feed.worked_ns,
        }
        for lfta, stream in feed.streams.items():
            counted = dict(feed.counters(lfta))
            counted["tuples_in_total"] += self._lost_later.get(stream, 0)
            self._streams[stream] = {
                "name": stream,
                "lfta": lfta,
                "interface": feed.name,
                **_tuples(counted, feed.runtime.lfta_counters(lfta)),
            }

    def _write(self) -> None:
        self._file.write(self._document())

    def _document(self) -> dict[str, Any]:
        now_ns = self._wall_ns()
        names = [interface.name for interface in self._settings.interfaces]
        interfaces = {name: each for name in names if (each := self._interface(name, now_ns))}
        packets = {name: {"packets": _seen(each)} for name, each in interfaces.items()}
        recent_packets = self._recent_packets.since(now_ns, packets)
        streams = dict(self._streams)  # threads of other interfaces add theirs
        tuples = {name: rated_counters(each) for name, each in streams.items()}
        recent_tuples = self._recent_tuples.since(now_ns, tuples)
        return {
            "schema": SCHEMA,
            "written_ns": now_ns,
            "began_ns": self._began_ns,
            "pid": os.getpid(),
            "is_live": self._settings.is_live,
            "heartbeat_interval_ns": self._settings.heartbeat_interval_ns,
            "sample_rate": self._settings.sample_rate,
            "shedding_mode": (self._settings.shedding or SheddingSettings()).mode.value,
            **self._followed_load(),
            "memory_bytes": memory_bytes(),
            **_continued({"cpu_s": round(time.process_time(), 3)}, self._earlier),
            "privileges": self._looked_up_privileges(),
            "interfaces": [
                {**each, "recent": recent_packets[name]} for name, each in interfaces.items()
            ],
            "streams": [
                {**each, "recent": recent_tuples[name]}
                for interface in names
                for name, each in streams.items()
                if each["interface"] == interface
            ],
            # The log keeps its own counters from one daemon to the next.
            "log": self._log_counters(),
            "remote": self._remote(),
        }

    def _followed_load(self) -> dict[str, Any]:
        """Return the rate that follows the load, and why it fell."""
        if self.control is None:
            return {"load_rate": 1.0, "least_load_rate": 1.0, "load_reason": "none"}
        rate, reason = self.control.lowest()
        least = min(self.control.least_rate, self._earlier.get("least_load_rate", 1.0))
        return {"load_rate": rate, "least_load_rate": least, "load_reason": reason.value}

    def _interface(self, name: str, now_ns: int) -> Mapping[str, Any]:
        """Return the entry of an interface: that of an earlier daemon if it ended there."""
        noted = self._interfaces.get(name)
        if noted is None:
            return self.earlier(name)
        return _interface(_continued(noted, self.earlier(name)), now_ns)

    def _log_counters(self) -> dict[str, int]:
        return {
            **asdict(self._log.stats),
            "budget_bytes": self._settings.log_bytes,
            "open_tuples": self._log.open_tuples,
            "waiting_messages": self._log.waiting_messages,
        }

    def _looked_up_privileges(self) -> dict[str, Any]:
        now_s = self._monotonic()
        if self._privileges is None or now_s - self._privileges[0] >= PRIVILEGES_S:
            self._privileges = now_s, privileges(self._unconfined)
        return self._privileges[1]


def privileges(unconfined: Sequence[str] = ()) -> dict[str, Any]:
    """Return the privileges of this process.

    They are its user, the capabilities of all its threads as one bit set, and what is not confined.
    """
    held = 0
    for bits in capabilities().values():
        held |= bits
    return {
        "uid": os.geteuid(),
        "capabilities": held,
        "no_new_privs": has_no_new_privileges(),
        "unconfined": list(unconfined),
    }


def memory_bytes(pid: int | str = "self") -> int:
    """Return the resident memory of a process in bytes; 0 if the process has ended."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123  # three times as fast as Path
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0


def _packets(summary: InterfaceSummary) -> dict[str, Any]:
    return {
        "received_packets": summary.received,
        "dropped_packets": summary.dropped,
        "filtered_packets": summary.filtered,
        "shed_packets": summary.shed,
        "late_packets": summary.late,
        "malformed_packets": {r: count for r, count in summary.malformed.items() if count},
        "unsupported_packets": {r: count for r, count in summary.unsupported.items() if count},
        "accepted_packets": summary.accepted,
        "unread_packets": summary.unread,
        "damage": list(summary.damage),
    }


def _tuples(counted: Mapping[str, int], counters: LftaCounters) -> dict[str, Any]:
    taken, emitted = counted["tuples_in_total"], counted["tuples_out_total"]
    return {
        **{name: counted.get(name, 0) for name in STREAM_COUNTERS},
        "table_slots": counters.table_slots,
        "table_bytes": counters.table_bytes,
        "selectivity": round(emitted / taken, 6) if taken else None,
    }


def _seen(interface: Mapping[str, Any]) -> int:
    """Return the number of packets that reached the LFTAs of an interface, shed ones included."""
    undecoded = sum(sum(interface[name].values()) for name in UNDECODED)
    return int(interface["accepted_packets"] + interface["shed_packets"] + undecoded)


def rated_counters(stream: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the counters of a stream of which there are rates, by the names of the rates."""
    names = ("tuples_in", "tuples_out", "evicted_groups")
    return {name: stream.get(f"{name}_total", 0) for name in names}


_NO_TABLE = {"table_slots": 0, "table_bytes": 0, "selectivity": None}


def _unreported(interface: InterfaceSettings, device: str, now_ns: int) -> dict[str, Any]:
    """Return the entry of an interface that no daemon has reported on."""
    state = SourceState(device, "ended", 0, 0, 0, 0, 0.0, interface.promise_skew_ns, 0, None, None)
    fields = {**asdict(state), **_packets(empty_summary(interface.name))}
    counters = dict.fromkeys(("heartbeats_total", "answers_total", "worked_ns"), 0)
    return _interface({**fields, **counters}, now_ns)


def _named(earlier: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    return next((each for each in earlier.get(kind, ()) if each.get("name") == name), {})


def _continued(now: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``now`` plus the counters of an earlier daemon of the same run."""
    total = {
        name: value + earlier.get(name, 0) if name in ADDED_UP else value
        for name, value in now.items()
    }
    for name in UNDECODED:
        if name in now and name in earlier:
            total[name] = added_by_reason(earlier[name], now[name])
    return total


def _interface(fields: dict[str, Any], now_ns: int) -> dict[str, Any]:
    """Return ``fields`` with the fields that are computed from others."""
    last_ns = fields["last_packet_ns"]
    undecoded = sum(sum(fields[name].values()) for name in UNDECODED)
    processed = fields["accepted_packets"] + undecoded
    lag_ns = fields["largest_lag_ns"]
    return {
        **fields,
        "idle_ns": None if last_ns is None or lag_ns is None else max(0, now_ns - last_ns),
        "ns_per_packet": round(fields["worked_ns"] / processed, 1) if processed else None,
    }
