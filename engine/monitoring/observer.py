"""Counters and traces of a running job, in the run's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.engine.monitoring.statistics import JobStatistics
from gscope.engine.monitoring.step_progress import StepWatch
from gscope.engine.monitoring.trace_file import TraceBook
from gscope.engine.monitoring.traces import Tracer
from gscope.queries.run_folder.layout import JOB_FOLDER, JOB_STATISTICS_FILE, TRACES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gscope.engine.steps.steps import Evaluation, Step, Steps
    from gscope.engine.storage.commits import Commit
    from gscope.queries.streams.messages import Message


class JobObserver:
    """Receives what the job does, step by step, and writes it to the run's folder; for one thread.

    Args:
        run_dir: the folder of the run.
        steps: the operators, restored.
        commits: the commits of earlier jobs of the run.
        java_pid: returns the process number of Spark's Java; None if there is none.
        watch: measures the current step; None for a new one.
    """

    def __init__(
        self,
        run_dir: Path,
        steps: Steps,
        commits: Sequence[Commit],
        java_pid: Callable[[], int | None],
        watch: StepWatch | None = None,
    ) -> None:
        self._steps = steps
        self._watch = watch or StepWatch()
        self._tracer = Tracer(TraceBook(run_dir / JOB_FOLDER / TRACES_FOLDER))
        self._statistics = JobStatistics(
            run_dir / JOB_STATISTICS_FILE, steps, self._tracer, java_pid
        )
        self._statistics.recover(commits)
        self._statistics.write()
        self._watch.on_look = self._statistics.on_look

    def advancing(self) -> None:
        """Note that the operators are about to look for released rows."""
        self._tracer.advancing()

    def waiting(self) -> None:
        """Note that nothing is released and the job waits for messages."""
        self._statistics.refresh()

    def on_asked(self, asked_total: int) -> None:
        """Note the number of heartbeats demanded so far."""
        self._statistics.asked_total = asked_total

    def on_messages(self, messages: Sequence[Message], received_ns: int) -> None:
        """Note messages that arrived at ``received_ns`` (since 1970) and are read now."""
        self._tracer.on_messages(messages, received_ns)
        self._statistics.on_messages(messages)

    def evaluating(self, step: Step) -> None:
        """Note that the evaluation of ``step`` begins."""
        self._watch.begin(step.number)
        self._statistics.evaluating(step)

    def evaluated(
        self, step: Step, evaluation: Evaluation, began_ns: int, ended_ns: int
    ) -> tuple[dict[str, Any], ...]:
        """Note when ``step`` was evaluated; return the hops of the heartbeat that released it."""
        return self._tracer.released(step, self._steps, evaluation, began_ns, ended_ns)

    def committed(self, step: Step, commit: Commit, began_ns: int, evaluated_s: float) -> None:
        """Note that ``step`` is durable and published, by a commit that began at ``began_ns``."""
        self._watch.end()
        self._tracer.committed(began_ns)
        self._statistics.on_commit(step, commit.outputs, evaluated_s, commit.counts)

    def close(self) -> None:
        """Write the final counters and traces."""
        self._tracer.close()
        self._statistics.write()
