"""Traces: the paths of heartbeats from their LFTAs to the committed steps that they released.

A trace is the hops of one heartbeat (see ``Hop``), one for each node that it passed::

    lfta      the LFTA of each stream closed epochs and promised bounds
    log       the daemon sealed the batches below the bounds
    flight    transfer from the daemon to this process
    inbox     waiting until this process, busy with a step, read it
    operator  each operator that it reached looked for released rows
    step      the released rows were evaluated
    commit    the answers became durable and visible

Heartbeats that release nothing are only counted, with the slowest of them: most heartbeats are of
this kind and must cost next to nothing.
"""

from __future__ import annotations

import time
from dataclasses import field
from math import isfinite
from typing import TYPE_CHECKING, Any

from gscope.engine.operators.base import pending_input
from gscope.queries.streams.messages import Heartbeat
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from gscope.engine.monitoring.trace_file import TraceBook
    from gscope.engine.steps.steps import Evaluation, Step, Steps
    from gscope.queries.streams.messages import Hop, Message

MAX_TRACES_A_STEP = 8
"""The most heartbeats that are traced for a step, out of the latest of each stream."""

MAX_LFTA_HOPS = 32
IDLE_NS = 60_000_000_000
"""The longest time, in ns, between records of heartbeats that released nothing."""

_LOG = "log"

_Trace = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _ArrivedHeartbeat:
    """A heartbeat of one stream, when it reached this process, and when that read it."""

    message: Heartbeat
    received_ns: int
    taken_ns: int


@dataclass(slots=True)
class _Idle:
    """Heartbeats that arrived since one released rows.

    Attributes:
        began_ns: when the first of them could arrive, nanoseconds since 1970.
        delays_ns: the time from each heartbeat's creation until it was read, by its identity.
    """

    began_ns: int
    delays_ns: dict[int, int] = field(default_factory=dict)


class Tracer:
    """Follows heartbeats through this process; for one thread.

    Args:
        book: the files to which traces are written.
        wall_ns: a clock, nanoseconds since 1970, as the daemon stamps hops.

    Attributes:
        heartbeats_total: the heartbeats received so far; those with the same identity on several
            streams count as one.
        idle_total: those of them that released nothing by themselves.
        clock_ns: the latest clock of a heartbeat; None before the first.
    """

    def __init__(self, book: TraceBook, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self.heartbeats_total = 0
        self.idle_total = 0
        self.clock_ns: int | None = None
        self._book = book
        self._wall_ns = wall_ns
        self._latest: dict[str, _ArrivedHeartbeat] = {}
        self._newest: list[_ArrivedHeartbeat] = []
        self._idle = _Idle(wall_ns())
        self._advance_ns = 0
        self._released: list[_Trace] = []

    def on_messages(self, messages: Iterable[Message], received_ns: int) -> None:
        """Note the heartbeats among messages that arrived at ``received_ns`` and are read now."""
        taken_ns = self._wall_ns()
        for message in messages:
            if isinstance(message, Heartbeat):
                self._on_heartbeat(_ArrivedHeartbeat(message, received_ns, taken_ns))
        if taken_ns - self._idle.began_ns >= IDLE_NS:
            self._write_idle(taken_ns)

    def advancing(self) -> None:
        """Note that the operators are about to look for released rows."""
        self._advance_ns = self._wall_ns()

    def released(
        self, step: Step, steps: Steps, evaluation: Evaluation, began_ns: int, ended_ns: int
    ) -> tuple[_Trace, ...]:
        """Return the hops of the latest heartbeat that released ``step``; () if none did.

        Called before the step is committed.

        Args:
            step: the step that was evaluated.
            steps: the operators in their present state.
            evaluation: the results of the step.
            began_ns: when the evaluation began, nanoseconds since 1970.
            ended_ns: when it ended.
        """
        groups: dict[int, list[_ArrivedHeartbeat]] = {}
        for seen in self._latest.values():
            groups.setdefault(seen.message.identity, []).append(seen)
        newest = sorted(groups)[-MAX_TRACES_A_STEP:]
        works = {work.node.query: work.rows for work in step.works}
        rows: dict[str, int] = {}
        for output in evaluation.outputs:
            rows[output.query] = rows.get(output.query, 0) + output.rows
        for identity in newest:
            hops = self._hops(groups[identity], steps, works, rows)
            arrived_ns = _end_ns(hops[-1])
            last = {
                "kind": "step",
                "node": f"step {step.number}",
                "arrived_ns": arrived_ns,
                "queued_ns": max(0, began_ns - arrived_ns),
                "worked_ns": ended_ns - began_ns,
                "tuples_in": sum(works.values()),
                "tuples_out": sum(rows.values()),
            }
            self._released.append(
                {
                    "id": identity,
                    "clock_ns": groups[identity][0].message.clock_ns,
                    "step": step.number,
                    "rows": sum(rows.values()),
                    "hops": [*hops, last],
                }
            )
        self._latest = {}
        return tuple(self._released[-1]["hops"]) if self._released else ()

    def committed(self, began_ns: int) -> None:
        """Write the traces of the step that has just become durable and published.

        Args:
            began_ns: when the commit began.
        """
        now_ns = self._wall_ns()
        if not self._released:
            return
        for trace in self._released:
            self._idle.delays_ns.pop(trace["id"], None)
        self._write_idle(now_ns)
        for trace in self._released:
            hops = trace["hops"]
            arrived_ns = _end_ns(hops[-1])
            queued_ns = max(0, began_ns - arrived_ns)
            hops.append(_hop("commit", f"commit {trace['step']}", arrived_ns, queued_ns, now_ns))
            trace["began_ns"] = min(hop["arrived_ns"] for hop in hops)
            trace["ended_ns"] = now_ns
            self._book.add(trace)
        self._released = []

    def newest(self, steps: Steps) -> _Trace | None:
        """Return the path so far of the newest heartbeat, even if it released nothing.

        None before the first heartbeat.
        """
        if not self._newest:
            return None
        first = self._newest[0].message
        hops = self._hops(self._newest, steps, {}, {})
        return {
            "id": first.identity,
            "clock_ns": first.clock_ns,
            "began_ns": min(hop["arrived_ns"] for hop in hops),
            "ended_ns": _end_ns(hops[-1]),
            "hops": hops,
        }

    def close(self) -> None:
        """Write the counts of heartbeats that released nothing, and close the files."""
        self._write_idle(self._wall_ns())
        self._book.close()

    def _on_heartbeat(self, seen: _ArrivedHeartbeat) -> None:
        message, idle = seen.message, self._idle
        made_ns = message.trace[0].arrived_ns if message.trace else seen.taken_ns
        if message.identity not in idle.delays_ns:
            idle.delays_ns[message.identity] = seen.taken_ns - made_ns
            self.heartbeats_total += 1
        self._latest[message.stream] = seen
        if self._newest and self._newest[0].message.identity == message.identity:
            self._newest.append(seen)
        else:
            self._newest = [seen]
        self.clock_ns = max(message.clock_ns, self.clock_ns or message.clock_ns)

    def _write_idle(self, now_ns: int) -> None:
        idle, self._idle = self._idle, _Idle(now_ns)
        delays_ns = idle.delays_ns
        if not delays_ns:
            return
        self.idle_total += len(delays_ns)
        slowest = max(delays_ns, key=lambda identity: delays_ns[identity])
        self._book.add(
            {
                "idle": len(delays_ns),
                "first": min(delays_ns),
                "last": max(delays_ns),
                "began_ns": idle.began_ns,
                "ended_ns": now_ns,
                "slowest": slowest,
                "slowest_ns": delays_ns[slowest],
            }
        )

    def _hops(
        self,
        seen: list[_ArrivedHeartbeat],
        steps: Steps,
        works: Mapping[str, int],
        rows: Mapping[str, int],
    ) -> list[_Trace]:
        """Return the hops of one heartbeat from its LFTAs to the operators."""
        hops = _daemon_hops(seen)
        received_ns = max(each.received_ns for each in seen)
        sent_ns = max((_end_ns(hop) for hop in hops), default=received_ns)
        flight_ns = max(0, received_ns - sent_ns)
        hops.append(_hop("flight", "flight", sent_ns, flight_ns, received_ns))
        taken_ns = max(each.taken_ns for each in seen)
        read_ns = max(taken_ns, self._advance_ns)
        hops.append(_hop("inbox", "inbox", received_ns, taken_ns - received_ns, read_ns))
        reached = frozenset[str]().union(*(steps.reached(each.message.stream) for each in seen))
        return [*hops, *_operator_hops(steps, reached, _end_ns(hops[-1]), works, rows)]


def _daemon_hops(seen: Iterable[_ArrivedHeartbeat]) -> list[_Trace]:
    """Return the hops of one heartbeat that the daemon has noted: LFTAs, and one for the log."""
    noted = [hop for each in seen for hop in each.message.trace]
    hops = [_noted_hop(hop, "lfta") for hop in noted if hop.node != _LOG][:MAX_LFTA_HOPS]
    logged = [_noted_hop(hop, "log") for hop in noted if hop.node == _LOG]
    if logged:
        # The daemon seals its streams one after the other.
        arrived_ns = min(hop["arrived_ns"] for hop in logged)
        queued_ns = min(hop["queued_ns"] for hop in logged)
        until_ns = max(_end_ns(hop) for hop in logged)
        hops.append({**logged[-1], **_hop("log", _LOG, arrived_ns, queued_ns, until_ns)})
    return hops


def _operator_hops(
    steps: Steps,
    reached: Collection[str],
    arrived_ns: int,
    works: Mapping[str, int],
    rows: Mapping[str, int],
) -> Iterator[_Trace]:
    """Yield the hops of the operators that a heartbeat reached; they work one after the other."""
    at_ns = arrived_ns
    for query, operator in steps.operators.items():
        worked_ns = steps.took_ns.get(query, 0)
        if query in reached:
            held, state = pending_input(operator), operator.state
            yield {
                **_hop("operator", query, arrived_ns, at_ns - arrived_ns, at_ns + worked_ns),
                "tuples_in": works.get(query, 0),
                "tuples_out": rows.get(query),
                "waiting_tuples": held.tuples,
                "waiting_bytes": held.size_bytes,
                "state_tuples": 0 if state is None else state.rows,
                "watermark": operator.watermark if isfinite(operator.watermark) else None,
                "late_tuples": operator.late_tuples,
            }
        at_ns += worked_ns


def _hop(kind: str, node: str, arrived_ns: int, queued_ns: int = 0, until_ns: int = 0) -> _Trace:
    """Return a hop whose work began after ``queued_ns`` and ended at ``until_ns``."""
    worked_ns = max(0, until_ns - arrived_ns - queued_ns)
    return {
        "kind": kind,
        "node": node,
        "arrived_ns": arrived_ns,
        "queued_ns": queued_ns,
        "worked_ns": worked_ns,
    }


def _noted_hop(hop: Hop, kind: str) -> _Trace:
    """Return a hop that the daemon has noted."""
    noted = _hop(kind, hop.node, hop.arrived_ns, hop.queued_ns)
    return {**noted, "worked_ns": hop.worked_ns, **dict(hop.counters)}


def _end_ns(hop: _Trace) -> int:
    """Return when a heartbeat left a node."""
    return int(hop["arrived_ns"] + hop["queued_ns"] + hop["worked_ns"])
