"""JobDiskBudget: what the job keeps on disk stays within its budget.

That is, beside the log: answers that nobody has taken yet, and carried rows. When answers are not taken the job waits;
then the log fills, and does what it does when it is full. Carried rows wait for others that have not come: waiting
would not make them fewer, so of a live capture the oldest are shed, with a count.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from typing import TYPE_CHECKING

from gscope.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.engine.steps.steps import Steps
    from gscope.engine.storage.commits import CommitLog

LOOK_S = 0.2
"""Whoever takes answers removes them and says nothing: they are looked for so often."""

DISK_RESERVE_BYTES = 8 << 20
"""No step of a live capture is begun while the disk has less left."""


class JobDiskBudget:
    """The job's share of the disk.

    Args:
        commits: what it keeps there.
        limit_bytes: of answers that were not taken, and of carried rows.
        is_live: whether rows may be shed, and a full disk is waited for.
        pause: waits for so many seconds.
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
        """Block until a step may put out more."""
        while self._commits.undelivered_bytes > self._limit_bytes or self._is_disk_full():
            self._pause(LOOK_S)

    def fit(self, steps: Steps) -> Counter[str]:
        """Make carried rows fit; to be done before a step is committed.

        Returns:
            Tuples shed, by the query that will not read them.

        Raises:
            EngineError: they do not fit, and must not be shed.
        """
        shed: Counter[str] = Counter()
        waiting = sorted(
            (
                (batch.sequence, query, side_number, name)
                for query, operator in steps.operators.items()
                for side_number, side in enumerate(operator.sides)
                for name, batch in side.pending
                if name in steps.operators and batch.sequence not in side.ports[name].partially_read
            ),
        )
        used = _carried_bytes(steps)
        for sequence, query, side_number, name in waiting:
            if used <= self._limit_bytes:
                break
            if not self._is_live:
                message = (
                    f"{query} keeps {used} bytes waiting for rows of its other inputs, but its limit is "
                    f"{self._limit_bytes}; raise it with --job-disk or use shorter epochs"
                )
                raise EngineError(message)
            port = steps.operators[query].sides[side_number].ports[name]
            lost = [batch for batch in port.pending if batch.sequence == sequence]
            port.forget({sequence})
            used -= sum(batch.size_bytes for batch in lost)
            shed[query] += sum(batch.rows for batch in lost)
        return shed

    def _is_disk_full(self) -> bool:
        free = shutil.disk_usage(self._commits.outputs).free
        return self._is_live and free < DISK_RESERVE_BYTES


def _carried_bytes(steps: Steps) -> int:
    return sum(
        batch.size_bytes
        for operator in steps.operators.values()
        for side in operator.sides
        for name, batch in side.pending
        if name in steps.operators
    )
