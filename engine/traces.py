"""Traces: the way of a heartbeat from its LFTA to the committed step that it released."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gscope.engine.operators.base import waiting
from gscope.queries.streams.messages import Heartbeat, Hop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.engine.steps import Step, Steps
    from gscope.queries.streams.messages import Message


class Tracer:
    """Follows the latest heartbeat; older ones that a step takes along are counted only."""

    def __init__(self) -> None:
        self._latest: Heartbeat | None = None
        self._arrived_ns = 0
        self._heartbeats = 0

    def on_messages(self, messages: Iterable[Message], now_ns: int) -> None:
        """Note the heartbeats among ``messages``, which arrived at ``now_ns`` (since 1970)."""
        for message in messages:
            if isinstance(message, Heartbeat):
                self._heartbeats += 1
                if self._latest is None or message.identity >= self._latest.identity:
                    self._latest = message
                    self._arrived_ns = now_ns

    def committed(
        self, step: Step, steps: Steps, began_ns: int, ended_ns: int, rows_out: int
    ) -> tuple[dict[str, Any], ...]:
        """The hops of the heartbeat that released ``step``, the step itself last; () for none.

        Args:
            step: what was evaluated.
            steps: the operators as they are now.
            began_ns: when its evaluation began, since 1970.
            ended_ns: when it ended.
            rows_out: rows of all its outputs.
        """
        latest, self._latest = self._latest, None
        heartbeats, self._heartbeats = self._heartbeats, 0
        if latest is None:
            return ()
        rows_in = sum(work.rows for work in step.works)
        held = [waiting(operator) for operator in steps.operators.values()]
        last = Hop(
            node=f"step {step.number}",
            arrived_ns=self._arrived_ns,
            queued_ns=max(0, began_ns - self._arrived_ns),
            worked_ns=ended_ns - began_ns,
            counters=(
                ("heartbeat", latest.identity),
                ("heartbeats", heartbeats),
                ("tuples_in", rows_in),
                ("tuples_out", rows_out),
                ("waiting_tuples", sum(each.tuples for each in held)),
                ("waiting_bytes", sum(each.size_bytes for each in held)),
            ),
        )
        return tuple(asdict(hop) for hop in (*latest.trace, last))
