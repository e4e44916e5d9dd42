"""The HFTA job: ``python -m gscope.engine.job RUN_DIR``.

A long-lived driver: it waits for the lines ``program`` (the queries are compiled) and ``connect``
(the capture daemon listens) on standard input, then evaluates one step after another until all
streams have ended. It starts Spark at once, or when a step needs it. When standard input closes,
the supervisor has died, and the job ends too.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gscope.engine.monitoring.step_progress import StepWatch
from gscope.engine.settings import JobSettings
from gscope.engine.spark.cluster.master import Master, ensure_reachable
from gscope.engine.spark.jvm.jvm_watchdog import report_failure
from gscope.engine.spark.spark_start import SparkStart
from gscope.engine.spark.tasks.here import TasksHere
from gscope.engine.storage.counts import Counts
from gscope.engine.termination import Termination
from gscope.errors import GscopeError
from gscope.queries.run_folder.layout import JOB_FOLDER, LIMITS_FILE, LOG_FOLDER, SOCKET_FILE
from gscope.queries.run_folder.startup import settle
from gscope.queries.streams.event_codec import EventWriter, to_plain
from gscope.queries.streams.process_events import (
    BoundsPromised,
    CommittedOutput,
    JobFinished,
    JobReady,
    StepCommitted,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.log_client.inbox import Inbox
    from gscope.engine.monitoring.observer import JobObserver
    from gscope.engine.spark.evaluation import Evaluator
    from gscope.engine.steps.disk_budget import JobDiskBudget
    from gscope.engine.steps.epoch_thresholds import SampleThresholds
    from gscope.engine.steps.steps import Step, Steps
    from gscope.engine.storage.commits import Commit, CommitLog
    from gscope.queries.plan.program import Program


MAX_IDLE_STEPS = 30
"""Steps without rows that may pass without a commit. A commit acknowledges the heartbeats of silent
links, so that the log can delete them."""


class Job:
    """One process of the HFTA job of a run; ``run`` returns when all queries are answered."""

    def __init__(self, run_dir: Path, events: EventWriter, termination: Termination) -> None:
        self._began = time.monotonic()
        self._run_dir = run_dir
        self._events = events
        self._termination = termination
        self._settings = JobSettings.read(run_dir)
        self._phases: dict[str, float] = {}
        self._clocks: dict[str, dict[str, float]] = {}
        self._reported_bounds: dict[str, dict[str, float]] = {}
        self._counted_before = Counts()
        self._is_described = threading.Event()
        self._connect = threading.Event()
        self._inbox: Inbox | None = None
        self._commits: CommitLog
        self._disk_budget: JobDiskBudget

    def on_program(self) -> None:
        """Note that the program is written; for any thread."""
        self._is_described.set()

    def on_daemon(self) -> None:
        """Note that a daemon listens: the first one, or one that takes over. For any thread."""
        self._is_described.set()
        self._connect.set()
        if self._inbox is not None:
            # In a thread: a hanging daemon blocks this, and the caller must keep watching stdin.
            threading.Thread(target=self._inbox.renew, name="renew leases", daemon=True).start()

    def run(self) -> None:
        """Wait until a daemon listens, and answer all queries; start Spark when it is needed.

        Raises:
            GscopeError: Java, Spark or the stream log failed; one sentence.
        """
        settings = self._settings
        ensure_reachable(Master.parse(settings.master))
        _sweep(self._run_dir / JOB_FOLDER)
        here = TasksHere(settings.cores)
        watch = StepWatch()
        with SparkStart(
            self._run_dir, settings, self._events, self._termination, watch, here
        ) as spark:
            if not settings.starts_spark_when_needed:
                spark.start()
            self._load()
            program = None
            if settings.starts_spark_when_needed:
                program = self._described()
                from gscope.engine.spark.small_steps import needs_sql

                if needs_sql(program):
                    spark.start()
            if settings.leaves_all_to_spark:
                _ = spark.session
            self._events.send(JobReady())
            self._connect.wait()
            self._phase("connected")
            steps = self._answer(spark, program or self._program(), here, watch)
            self._phases |= spark.phases
        self._phase("finished")
        spark.build_archive_later()
        self._events.send(JobFinished(steps, self._phases, self._clocks))

    def _described(self) -> Program:
        """Return the program, once it is written."""
        self._is_described.wait()
        return self._program()

    def _load(self) -> None:
        """Open the commit log, and load the modules that evaluate steps."""
        # Imported while the query is compiled, and Java starts.
        from gscope.engine.log_client.inbox import Inbox  # noqa: F401
        from gscope.engine.spark.evaluation import Evaluator  # noqa: F401
        from gscope.engine.steps.disk_budget import JobDiskBudget
        from gscope.engine.storage.commits import CommitLog

        self._commits = CommitLog(self._run_dir / JOB_FOLDER)
        self._disk_budget = JobDiskBudget(
            self._commits, self._settings.disk_bytes, is_live=self._settings.is_live
        )

    def _answer(
        self, spark: SparkStart, program: Program, here: TasksHere, watch: StepWatch
    ) -> int:
        """Evaluate all steps after the last commit; return the number of the last step."""
        from gscope.engine.log_client.inbox import Inbox
        from gscope.engine.monitoring.observer import JobObserver
        from gscope.engine.spark.evaluation import Evaluator
        from gscope.engine.steps.steps import Steps

        steps = Steps(
            program, frozenset(self._settings.latent_interfaces), samples=self._samples(program)
        )
        commits = self._recover(steps)
        observer = JobObserver(self._run_dir, steps, commits, lambda: spark.java_pid, watch)
        # If all was answered before a crash, the daemon is gone.
        if not steps.is_finished:
            evaluator = Evaluator(spark, program, self._run_dir / LOG_FOLDER, self._commits, here)
            socket = self._run_dir / SOCKET_FILE
            limits = self._run_dir / LOG_FOLDER / LIMITS_FILE
            with Inbox(socket, steps.needed(), self._connect, limits) as self._inbox:
                self._follow(steps, evaluator, observer, self._inbox)
        observer.close()
        self._clocks = steps.output_clocks()
        return steps.number

    def _follow(
        self, steps: Steps, evaluator: Evaluator, observer: JobObserver, inbox: Inbox
    ) -> None:
        """Evaluate one step after another until all operators have answered everything."""
        from gscope.engine.steps.batch_leases import leased_batches, without_shed
        from gscope.engine.steps.heartbeat_requests import Asker
        from gscope.queries.streams.leases import LeaseReply

        idle_steps = 0
        asker = None
        if self._settings.asks_for_heartbeats:
            asker = Asker(steps.operators, inbox.punctuate)
        while not steps.is_finished:
            observer.advancing()
            step = steps.next()
            if step is None:
                if self._settings.reports_bounds:
                    # Those of rows that pass as they come rise without a step.
                    self._report_bounds(steps)
                observer.waiting()
                if asker is not None:
                    asker.ask()
                    observer.on_asked(asker.asked_total)
                messages = inbox.take()
                observer.on_messages(messages, inbox.received_ns)
                steps.on_messages(messages)
                if asker is not None:
                    asker.on_messages(messages)
            elif step.reads_rows or self._commits_idle(idle_steps, steps) or steps.is_finished:
                idle_steps = 0
                self._disk_budget.wait()
                reply = LeaseReply()
                if self._settings.is_live:
                    batches = leased_batches(step, steps)
                    reply = inbox.lease(self._settings.consumer, batches, steps.answered())
                    step = without_shed(step, steps, reply.gone)
                step = steps.sampled(step, reply.limits)
                self._evaluate(step, steps, evaluator, observer)
                self._phases.setdefault("first_commit", time.monotonic() - self._began)
                if not steps.is_finished:
                    inbox.acknowledge(self._settings.consumer, steps.needed())
            else:
                idle_steps += 1
                if not self._settings.is_live or steps.program.answers:
                    # A replay, and another host, deliver rows once no earlier ones can follow.
                    self._report_bounds(steps)
        inbox.acknowledge_last(self._settings.consumer, steps.needed())

    def _report_bounds(self, steps: Steps) -> None:
        """Report the bounds of the results, unless they were reported."""
        bounds = steps.output_bounds()
        if bounds != self._reported_bounds:
            self._reported_bounds = bounds
            self._events.send(BoundsPromised(bounds))

    def _commits_idle(self, idle_steps: int, steps: Steps) -> bool:
        """Return whether a step without rows is committed.

        A promise to another host must not come before the marks of the epochs below it.
        """
        has_marks = bool(steps.program.answers) and steps.incomplete.is_waiting
        return idle_steps == MAX_IDLE_STEPS or has_marks

    def _evaluate(
        self, step: Step, steps: Steps, evaluator: Evaluator, observer: JobObserver
    ) -> None:
        from gscope.engine.spark.sql.user_failures import user_failures
        from gscope.engine.storage.commits import Commit

        observer.evaluating(step)
        began = time.time_ns()
        with user_failures():
            evaluation = evaluator.run(step)
        steps.on_evaluated(evaluation)
        steps.shed_tuples.update(self._disk_budget.fit(steps))
        ended = time.time_ns()
        outputs = evaluation.outputs
        incomplete = steps.incomplete.mark()
        state = steps.snapshot()
        trace = observer.evaluated(step, evaluation, began, ended)
        counts = self._counted_before + evaluator.counts()
        commit = Commit(step.number, state, outputs, trace, counts, steps.partitioning, incomplete)
        committing = time.time_ns()
        self._commits.write(commit)
        self._commits.publish(outputs)
        observer.committed(step, commit, committing, (ended - began) / 1e9)
        self._commits.drop_carry(steps.carried())
        self._reported_bounds = steps.output_bounds()
        self._report(commit, (ended - began) / 1e9, steps, self._reported_bounds)

    def _recover(self, steps: Steps) -> list[Commit]:
        """Continue after the last commit; return all commits.

        Reports the outputs of all of them: the supervisor knows which it has delivered.
        """
        commits = self._commits.recover()
        for commit in commits:
            self._report(commit, 0.0, steps, {})
        if commits:
            last = commits[-1]
            steps.restore(last.step, last.operators, last.partitioning)
            self._counted_before = commits[-1].counts
        return commits

    def _report(
        self, commit: Commit, step_s: float, steps: Steps, bounds: dict[str, dict[str, float]]
    ) -> None:
        operators = commit.operators
        lost = {
            each.query: steps.incomplete.answers(commit.incomplete, each.query)
            for each in steps.program.answers
        }
        self._events.send(
            StepCommitted(
                step=commit.step,
                outputs=tuple(
                    CommittedOutput(each.query, each.path, each.rows, each.files)
                    for each in commit.outputs
                ),
                bounds=bounds,
                watermarks={query: state["watermark"] for query, state in operators.items()},
                step_s=step_s,
                late_tuples=_counted(operators, "late_tuples"),
                shed_tuples=_counted(operators, "shed_tuples"),
                trimmed_tuples=_counted(operators, "trimmed_tuples"),
                partial={q: tuple(s["partial"]) for q, s in operators.items() if s["partial"]},
                incomplete=commit.incomplete,
                incomplete_epochs=_incomplete(operators),
                lost_answers={query: tuple(map(to_plain, rows)) for query, rows in lost.items()},
                **asdict(commit.counts),
            )
        )

    def _program(self) -> Program:
        from gscope.queries.plan.program_file import read_program
        from gscope.queries.run_folder.layout import PROGRAM_FILE

        program = read_program(self._run_dir / PROGRAM_FILE)
        if program.user_files:
            from gscope.queries.catalog.user_functions.install import install

            install(program.user_files)
        if self._settings.sample_rate == 1:
            return program
        from gscope.queries.plan.sampling.scaling import with_rate

        return with_rate(program, self._settings.sample_rate)

    def _samples(self, program: Program) -> SampleThresholds | None:
        """Return the thresholds that follow the load; None if the capture has none."""
        from gscope.queries.run_folder.sample_seed import moving_seed

        seed = moving_seed(self._run_dir)
        if seed is None:
            return None
        from gscope.engine.steps.epoch_thresholds import SampleThresholds
        from gscope.queries.plan.sampling.keyed_hash import HashKey
        from gscope.queries.plan.sampling.moving_samples import moving_samples

        return SampleThresholds(moving_samples(program)[0], HashKey.of_seed(seed))

    def _phase(self, name: str) -> None:
        self._phases[name] = time.monotonic() - self._began


def _counted(operators: Mapping[str, Mapping[str, Any]], counter: str) -> dict[str, int]:
    """Return a counter of all operators, by query; those that are 0 are left out."""
    return {query: state[counter] for query, state in operators.items() if state[counter]}


def _incomplete(operators: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the number of incomplete epochs of all operators that have some, by reason."""
    counts = {query: state["incomplete"]["counts"] for query, state in operators.items()}
    return {query: each for query, each in counts.items() if each}


def _sweep(folder: Path) -> None:
    """Delete the files that the Java of a killed job left behind."""
    for path in folder.glob("jvm-*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def _watch_supervisor(job: Job) -> None:
    """Notify ``job`` of the program and of each daemon.

    End the process when the supervisor has died.
    """
    for line in sys.stdin:
        match line.strip():
            case "program":
                job.on_program()
            case "connect":
                job.on_daemon()
    # no clean-up is needed: the JVM sees its own pipe close, and a commit is atomic
    os._exit(1)


def main() -> None:
    """Run the job named on the command line."""
    settle()
    termination = Termination()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to handle
    events = EventWriter(sys.stdout)
    try:
        job = Job(Path(sys.argv[1]), events, termination)
        threading.Thread(target=_watch_supervisor, args=(job,), daemon=True).start()
        job.run()
    except GscopeError as error:
        report_failure(events, error)
        raise SystemExit(1) from error
    finally:
        termination.wait_if_terminating()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Java is gone and all is committed; finalizing the interpreter would only take time.
    os._exit(0)
