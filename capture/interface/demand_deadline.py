"""Heartbeats on demand: the bound that ends a wait, and so the time of the next heartbeat.

An operator that has sent a demand waits (see ``engine/steps/needed_bounds.py``). So do the LFTAs
themselves: for rows of a selection that no reader sees before a heartbeat has passed them, and for
groups whose epoch only a heartbeat closes. Each of them has a bound that ends its wait, and a
heartbeat that reaches the earliest is sent at once. It is never too early, so one is enough, and
never without effect. After Bai, Thakkar, Wang, Zaniolo: Optimizing Timestamp Management in Data
Stream Management Systems (ICDE 2007).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.punctuation import NO_BOUND, closed_epoch, promise_time
from gscope.queries.int64 import MAX_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.capture.heartbeats.demands import Demands, Wanted
    from gscope.capture.lfta.runtime import LftaEngine
    from gscope.queries.plan.program import Lfta

NEVER_NS = MAX_TIME_NS

PROMPT_NS = 100_000_000
"""Time for which rows that follow each other closely are collected in one segment.

Half a step of Spark, which takes longer the more segments it reads. The first row after a silence
is emitted at once."""


class OnDemand:
    """The time of an interface's next heartbeat on demand; used by the thread that captures it.

    Args:
        runtime: the LFTAs of the interface.
        lftas: the program's LFTAs of the interface, by the stream that each writes.
        demands: demands of all readers.
        is_latent: see ``InterfaceSettings``.

    Attributes:
        answers_total: number of heartbeats that answered the demand of a reader.
    """

    def __init__(
        self,
        runtime: LftaEngine,
        lftas: Mapping[str, Lfta],
        demands: Demands,
        *,
        is_latent: bool = False,
    ) -> None:
        self._is_latent = is_latent
        self.answers_total = 0
        self._runtime = runtime
        self._lftas = dict(lftas)
        self._demands = demands
        # The first heartbeat is sent at once, so that readers know how far every stream is.
        self._asked_ns = NO_BOUND
        self._is_asked = False
        self._oldest_ns = NEVER_NS
        self._latest_ns = NO_BOUND
        self._passed_tuples = 0
        self._epoch_ends: dict[str, tuple[int, int]] = {}

    def on_packets(self, least_ns: int, greatest_ns: int) -> None:
        """Note that packets between these times were processed."""
        self._oldest_ns = min(self._oldest_ns, least_ns)
        self._latest_ns = max(self._latest_ns, greatest_ns)

    def on_heartbeat(self) -> None:
        """Note that a heartbeat was sent: the wait of what it passed is over."""
        bound_ns = self._runtime.bound_ns
        if self._asked_ns <= bound_ns:
            self._asked_ns = NEVER_NS
            self.answers_total += self._is_asked
            self._is_asked = False
        if self._latest_ns <= bound_ns or self._is_latent:
            self._oldest_ns = NEVER_NS
            self._passed_tuples = self._selected_tuples()
        else:
            self._oldest_ns = max(self._oldest_ns, bound_ns)

    def wanted_ns(self) -> int:
        """Return the bound on packet times that ends the first wait; ``NEVER_NS`` if none."""
        for stream, wanted in self._demands.take(self._lftas).items():
            self._asked_ns = min(self._asked_ns, self._time_of(self._lftas[stream], wanted))
            self._is_asked = True
        return min(self._asked_ns, self._rows_ns(), self._groups_ns())

    def _time_of(self, lfta: Lfta, wanted: Wanted) -> int:
        """Return when all of ``wanted`` can be promised: soon if that does not depend on time."""
        now_ns = self._runtime.bound_ns
        if not wanted:
            return now_ns if now_ns == NO_BOUND else now_ns + PROMPT_NS
        times = [promise_time(lfta, name, bound, now_ns) for name, bound in wanted.items()]
        return max([now_ns, *(time_ns for time_ns in times if time_ns is not None)])

    def _rows_ns(self) -> int:
        """Return the bound that passes the rows of selections that no heartbeat has passed."""
        if self._oldest_ns == NEVER_NS or self._selected_tuples() == self._passed_tuples:
            return NEVER_NS
        bound_ns = self._runtime.bound_ns
        if self._is_latent:
            # Rows are passed promptly, but without a heartbeat for each packet of a busy link.
            return bound_ns + PROMPT_NS
        soonest_ns = max(self._oldest_ns, bound_ns + PROMPT_NS)
        return min(self._latest_ns, soonest_ns)

    def _selected_tuples(self) -> int:
        return sum(
            self._runtime.lfta_counters(lfta.name).matched_tuples
            for lfta in self._lftas.values()
            if not lfta.is_aggregation
        )

    def _groups_ns(self) -> int:
        """Return the bound that closes the first epoch of which there may be groups."""
        bound_ns = self._runtime.bound_ns
        ends = [
            bound_ns if bound_ns == NO_BOUND else self._epoch_end(lfta, bound_ns)
            for lfta in self._lftas.values()
            if lfta.is_aggregation and self._runtime.lfta_counters(lfta.name).live_groups
        ]
        return min(ends, default=NEVER_NS)

    def _epoch_end(self, lfta: Lfta, bound_ns: int) -> int:
        closed = closed_epoch(lfta, bound_ns)
        if closed is None:
            return NEVER_NS
        known = self._epoch_ends.get(lfta.name)
        if known is None or known[0] != closed:
            assert lfta.epoch is not None
            end_ns = promise_time(lfta, lfta.epoch, closed + 2, bound_ns)
            known = closed, NEVER_NS if end_ns is None else end_ns
            self._epoch_ends[lfta.name] = known
        return known[1]
