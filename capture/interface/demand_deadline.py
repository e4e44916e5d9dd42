"""Heartbeats on demand: at which bound somebody's waiting ends, and so when the next heartbeat is wanted.

Who waits is an operator that asks (see ``engine/steps/needed_bounds.py``), or the LFTAs themselves: rows of a selection that no
reader sees before a heartbeat has passed them, groups whose epoch only a heartbeat closes. All of them name the bound
that ends their waiting, and a heartbeat that reaches the earliest is sent at once: never too early, so that one is
enough, and never for nothing. After Bai, Thakkar, Wang, Zaniolo: Optimizing Timestamp Management in Data Stream
Management Systems (ICDE 2007).
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
"""Rows that follow each other closely are put out together, a segment for so long: half a step of Spark, which takes the
longer the more segments it reads. The first row after a silence goes at once."""


class OnDemand:
    """When the next heartbeat of one interface is wanted; for the thread that captures it.

    Args:
        runtime: the interface's LFTAs.
        lftas: those, by the stream that each writes.
        demands: of all readers.
        is_latent: see ``InterfaceSettings``.

    Attributes:
        answers_total: heartbeats that answered a reader.
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
        # The first heartbeat comes at once: readers know then how far every stream is.
        self._asked_ns = NO_BOUND
        self._is_asked = False
        self._oldest_ns = NEVER_NS
        self._latest_ns = NO_BOUND
        self._told_tuples = 0
        self._epoch_ends: dict[str, tuple[int, int]] = {}

    def on_packets(self, least_ns: int, greatest_ns: int) -> None:
        """Packets of these times were processed."""
        self._oldest_ns = min(self._oldest_ns, least_ns)
        self._latest_ns = max(self._latest_ns, greatest_ns)

    def on_beat(self) -> None:
        """A heartbeat was sent: what it passed waits no longer."""
        bound_ns = self._runtime.bound_ns
        if self._asked_ns <= bound_ns:
            self._asked_ns = NEVER_NS
            self.answers_total += self._is_asked
            self._is_asked = False
        if self._latest_ns <= bound_ns or self._is_latent:
            self._oldest_ns = NEVER_NS
            self._told_tuples = self._selected_tuples()
        else:
            self._oldest_ns = max(self._oldest_ns, bound_ns)

    def wanted_ns(self) -> int:
        """The bound on packet times that somebody waits for; ``NEVER_NS`` while nobody waits."""
        for stream, wanted in self._demands.take(self._lftas).items():
            self._asked_ns = min(self._asked_ns, self._time_of(self._lftas[stream], wanted))
            self._is_asked = True
        return min(self._asked_ns, self._rows_ns(), self._groups_ns())

    def _time_of(self, lfta: Lfta, wanted: Wanted) -> int:
        """When all of ``wanted`` can be promised; soon where that is not a matter of time."""
        now_ns = self._runtime.bound_ns
        if not wanted:
            return now_ns if now_ns == NO_BOUND else now_ns + PROMPT_NS
        times = [promise_time(lfta, name, bound, now_ns) for name, bound in wanted.items()]
        return max([now_ns, *(time_ns for time_ns in times if time_ns is not None)])

    def _rows_ns(self) -> int:
        """The bound that passes rows of selections that nobody has seen."""
        if self._oldest_ns == NEVER_NS or self._selected_tuples() == self._told_tuples:
            return NEVER_NS
        bound_ns = self._runtime.bound_ns
        if self._is_latent:
            # Seen at once, but not in a heartbeat for each packet of a busy link.
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
        """The bound that closes the first epoch of which there may be groups."""
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
