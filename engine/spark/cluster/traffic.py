"""Bytes that a run sends between the host of the job and executors, and between executors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.engine.storage.transfer.run_files import files_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from gscope.engine.storage.transfer.server import FileServer

EXCHANGED = "exchanged"
"""The kind of bytes that tasks write for tasks of another stage of Spark: shuffles."""

_EVENTS_MS = 1000
"""The most milliseconds to wait until Spark's store is up to date; if it is not, the next look
counts."""


class TrafficMeter:
    """The bytes of a session on a cluster, from its construction on; for one thread.

    The file server counts what executors fetch and return. Spark's status store has what each stage
    wrote for exchanges, also that of attempts which failed.

    Args:
        session: the session.
        server: the job's file server; None if all executors see the run's folder.
    """

    def __init__(self, session: SparkSession, server: FileServer | None) -> None:
        self._context = session.sparkContext
        self._server = server
        self._exchanged_bytes = 0
        self._last_stage = -1
        self._look()
        self._before = self._totals()

    @classmethod
    def of(cls, session: SparkSession) -> TrafficMeter | None:
        """Return the meter of a session on a cluster; None if tasks run in the job's own Java."""
        files = files_of(session)
        return None if files is None else cls(session, files.server)

    def bytes_by_kind(self) -> dict[str, int]:
        """Return the bytes so far, by kind; call it while no task runs.

        The kinds are those of ``FileServer.bytes_by_kind``, and ``EXCHANGED``.
        """
        self._look()
        return {kind: total - self._before[kind] for kind, total in self._totals().items()}

    def _totals(self) -> dict[str, int]:
        from gscope.engine.storage.transfer.server import NOTHING_SENT

        sent = NOTHING_SENT if self._server is None else self._server.bytes_by_kind()
        return {**sent, EXCHANGED: self._exchanged_bytes}

    def _look(self) -> None:
        """Add the stages that have ended since the last look."""
        from py4j.protocol import Py4JJavaError

        context: Any = self._context
        scala = context._jsc.sc()
        try:
            scala.listenerBus().waitUntilEmpty(_EVENTS_MS)
        except Py4JJavaError:
            return
        java = context._jvm.java.util
        no_quantiles = context._gateway.new_array(context._jvm.double, 0)
        stages = scala.statusStore().stageList(
            java.ArrayList(), False, False, no_quantiles, java.ArrayList()
        )
        known = self._last_stage
        for number in range(stages.size()):  # the newest first
            stage = stages.apply(number)
            if (identity := int(stage.stageId())) <= known:
                return
            self._last_stage = max(self._last_stage, identity)
            self._exchanged_bytes += int(stage.shuffleWriteBytes())
