"""The disk budget of the HFTA job: undelivered answers and carried rows.

(The log has a budget of its own.) While answers are not delivered the job waits; then the log fills
up, and blocks or sheds. Carried rows wait for rows that have not arrived, so waiting would not make
them fewer: in a live capture the oldest are shed, with a count. The slices of open windows are shed
last, those of an operator all at once: its windows begin again with what arrives next.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from typing import TYPE_CHECKING

from gscope.errors import EngineError
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.plan.windows.columns import SLICE

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.engine.operators.base import Operator
    from gscope.engine.steps.steps import Steps
    from gscope.engine.storage.commits import CommitLog
    from gscope.engine.storage.parquet_files import State
    from gscope.engine.watermarks.ports import Port
    from gscope.queries.streams.messages import Batch

LOOK_S = 0.2
"""How often the job checks, in seconds, whether answers were delivered: the reader removes them
without notice."""

DISK_RESERVE_BYTES = 8 << 20
"""A live capture starts no step while the disk has less free space."""


class JobDiskBudget:
    """The disk space that the job may use.

    Args:
        commits: the outputs and carried rows that are on disk.
        limit_bytes: the limit of undelivered answers, and of carried rows and slices.
        is_live: whether carried rows and slices may be shed, and a step waits while the disk is
            full.
        pause: waits for a time in seconds; None for the usual clock.
    """

    def __init__(
        self,
        commits: CommitLog,
        limit_bytes: int,
        *,
        is_live: bool,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._commits = commits
        self._limit_bytes = limit_bytes
        self._is_live = is_live
        self._pause = pause or threading.Event().wait

    def wait(self) -> None:
        """Block until a step may write more answers."""
        while self._commits.undelivered_bytes > self._limit_bytes or self._is_disk_full():
            self._pause(LOOK_S)

    def fit(self, steps: Steps) -> Counter[str]:
        """Shed carried rows, then slices, until the rest fits; call this before a commit.

        Returns:
            The tuples shed, by the query that was to read them.

        Raises:
            EngineError: they do not fit, and a replay must not shed.
        """
        shed: Counter[str] = Counter()
        waiting = sorted(
            (batch.sequence, query, side_number, name)
            for query, operator in steps.operators.items()
            for side_number, side in enumerate(operator.sides)
            for name, batch in side.pending
            if name in steps.operators and _can_shed(operator, side.ports[name], batch)
        )
        kept = _kept_bytes(steps)
        used = kept.total()
        if used > self._limit_bytes and not self._is_live and (waiting or _slices(steps)):
            raise EngineError(self._too_much(steps, kept))
        for sequence, query, side_number, name in waiting:
            if used <= self._limit_bytes:
                return shed
            port = steps.operators[query].sides[side_number].ports[name]
            lost = [batch for batch in port.pending if batch.sequence == sequence]
            port.forget({sequence})
            used -= sum(batch.size_bytes for batch in lost)
            shed[query] += sum(batch.rows for batch in lost)
            for batch in lost:
                steps.incomplete.on_side_lost(query, side_number, batch.extents)
        largest_first = sorted(_slices(steps).items(), key=lambda each: -each[1].size_bytes)
        for query, state in largest_first:
            if used <= self._limit_bytes:
                return shed
            steps.operators[query].state = None
            slices = state.extent(SLICE)
            steps.incomplete.on_slices_lost(query, slices.least, slices.greatest)
            used -= state.size_bytes
            shed[query] += state.rows
        return shed

    def _too_much(self, steps: Steps, kept: Counter[str]) -> str:
        """Return the message that names the query that keeps the most, and the remedy."""
        ((query, size),) = kept.most_common(1)
        amount = f"{size}" if size == kept.total() else f"{size} of {kept.total()}"
        limit = f"but the limit is {self._limit_bytes}; raise it with --job-disk or use"
        if isinstance(steps.operators[query].node, WindowNode):
            return (
                f"{query} keeps {amount} bytes for windows that are open, {limit} a shorter RANGE"
            )
        return (
            f"{query} keeps {amount} bytes waiting for rows of its other inputs, {limit} shorter"
            " epochs"
        )

    def _is_disk_full(self) -> bool:
        free = shutil.disk_usage(self._commits.outputs).free
        return self._is_live and free < DISK_RESERVE_BYTES


def _can_shed(operator: Operator, port: Port, batch: Batch) -> bool:
    """Return whether a carried batch may be shed: a join needs what it has read in part."""
    is_read = batch.sequence in port.partially_read
    return not is_read or isinstance(operator.node, WindowNode)


def _slices(steps: Steps) -> dict[str, State]:
    """Return the slices of open windows, by query."""
    return {
        query: operator.state
        for query, operator in steps.operators.items()
        if isinstance(operator.node, WindowNode) and operator.state is not None
    }


def _kept_bytes(steps: Steps) -> Counter[str]:
    """Return the bytes of carried rows and of slices of open windows, by query."""
    kept = Counter({query: state.size_bytes for query, state in _slices(steps).items()})
    for query, operator in steps.operators.items():
        for side in operator.sides:
            carried = (batch for name, batch in side.pending if name in steps.operators)
            kept[query] += sum(batch.size_bytes for batch in carried)
    return kept
