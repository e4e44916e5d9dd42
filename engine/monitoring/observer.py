"""What others see of the job while it runs: counters and traces, in the run's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.engine.monitoring.statistics import JobStatistics
from gscope.engine.monitoring.step_progress import StepWatch
from gscope.engine.monitoring.trace_file import TRACES_FOLDER, TraceBook
from gscope.engine.monitoring.traces import Tracer
from gscope.engine.settings import JOB_FOLDER
from gscope.queries.run_folder.snapshot import JOB_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gscope.engine.steps.steps import Evaluation, Step, Steps
    from gscope.engine.storage.commits import Commit
    from gscope.queries.streams.messages import Message


class JobObserver:
    """Told what the job does, step by step; for one thread.

    Args:
        run_dir: of the run.
        steps: the operators, restored.
        commits: of earlier jobs of the run.
        java_pid: of Spark.
        watch: told which step is at hand, and asked how it stands.
    """

    def __init__(
        self,
        run_dir: Path,
        steps: Steps,
        commits: Sequence[Commit],
        java_pid: int | None,
        watch: StepWatch | None = None,
    ) -> None:
        self._steps = steps
        self._watch = watch or StepWatch()
        self._tracer = Tracer(TraceBook(run_dir / JOB_FOLDER / TRACES_FOLDER))
        self._statistics = JobStatistics(run_dir / JOB_FILE, steps, self._tracer, java_pid)
        self._statistics.recover(commits)
        self._statistics.write()
        self._watch.on_look = self._statistics.on_look

    def advancing(self) -> None:
        """The operators look for what is released, now."""
        self._tracer.advancing()

    def waiting(self) -> None:
        """Nothing is released; the job waits for messages."""
        self._statistics.refresh()

    def on_asked(self, asked_total: int) -> None:
        """So many heartbeats were asked for by now."""
        self._statistics.asked_total = asked_total

    def on_messages(self, messages: Sequence[Message], received_ns: int) -> None:
        """Messages that reached this process at ``received_ns`` (since 1970) are looked at now."""
        self._tracer.on_messages(messages, received_ns)
        self._statistics.on_messages(messages)

    def evaluating(self, step: Step) -> None:
        """Spark begins to evaluate ``step``."""
        self._watch.begin(step.number)
        self._statistics.evaluating(step)

    def evaluated(
        self, step: Step, evaluation: Evaluation, began_ns: int, ended_ns: int
    ) -> tuple[dict[str, Any], ...]:
        """``step`` was evaluated from ``began_ns`` to ``ended_ns``; the hops of the heartbeat that released it."""
        return self._tracer.released(step, self._steps, evaluation, began_ns, ended_ns)

    def committed(self, step: Step, commit: Commit, began_ns: int, evaluated_s: float) -> None:
        """What ``step`` gave is durable and published; that began at ``began_ns``."""
        self._watch.end()
        self._tracer.committed(began_ns)
        self._statistics.on_commit(step, commit.outputs, evaluated_s, commit.counts)

    def close(self) -> None:
        """Write down how all stands at the end."""
        self._tracer.close()
        self._statistics.write()
