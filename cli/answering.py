"""One run from the queries to the summary: what ``replay`` and ``run`` have in common."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gscope.capture.settings import InterfaceSettings
    from gscope.cli.answers import Sink
    from gscope.cli.asked import Asked
    from gscope.cli.capture_plan import Bounds
    from gscope.cli.config import Config
    from gscope.cli.outcome import Outcome
    from gscope.cli.supervisor import Supervisor, Watcher
    from gscope.queries.plan.program import Program

EXIT_FAILED = 1
EXIT_LOST = 3


@dataclass(frozen=True, slots=True)
class Report:
    """What is told on standard error.

    Attributes:
        is_quiet: nothing but errors.
        has_timings: how long each phase took.
    """

    is_quiet: bool
    has_timings: bool


@dataclass(frozen=True, slots=True)
class Run:
    """What is asked, over what, and where the answers go.

    Attributes:
        asked: the queries.
        interfaces: captures or devices.
        bounds: how fast and how long.
        expected_bytes: of all captures together, None if that is not known.
        folder: for files; None for standard output.
        config: everything else.
    """

    asked: Asked
    interfaces: tuple[InterfaceSettings, ...]
    bounds: Bounds
    expected_bytes: int | None
    folder: Path | None
    config: Config

    def answer(self, watcher: Watcher, report: Report, began: float) -> int:
        """Start everything, deliver every answer, tell how it went; the exit code.

        Args:
            watcher: told how the run goes.
            report: what is told at the end.
            began: ``time.monotonic()`` when the command began.

        Raises:
            GscopeError: a query is wrong, or a process failed.
        """
        from gscope.cli.liveness import Patience
        from gscope.cli.run_dir import RunDir
        from gscope.cli.run_name import default_name
        from gscope.cli.supervisor import Supervisor
        from gscope.engine.settings import EngineSettings

        config = self.config
        with RunDir(config.work_dir, default_name(self.asked)) as run_dir:
            run_dir.file.change(
                command=tuple(sys.argv[1:]),
                interfaces=tuple(interface.name for interface in self.interfaces),
                is_live=any(interface.device is not None for interface in self.interfaces),
                folder=None if self.folder is None else str(self.folder.resolve()),
            )
            patience = Patience.of(config.failure_timeout_ns, config.heartbeat_interval_ns)
            supervisor = Supervisor(run_dir.file, watcher, began, patience)
            try:
                # Before the queries compile: starting Java is the longest part of a small run.
                supervisor.start_job(
                    EngineSettings(
                        cores=config.spark_cores,
                        heap_bytes=config.spark_memory_bytes,
                        expected_bytes=self.expected_bytes,
                        asks_for_heartbeats=config.heartbeat_mode.is_on_demand,
                    )
                )
                with _signals(supervisor):
                    rows = self._deliver(supervisor)
            finally:
                supervisor.stop()
        return _report(supervisor.outcome, rows, report, config)

    def _deliver(self, supervisor: Supervisor) -> dict[str, int]:
        """Compile, capture, deliver; rows by query."""
        from gscope.cli.query_texts import compile_asked

        names = tuple(interface.name for interface in self.interfaces)
        program = compile_asked(self.asked, names, self.config).program
        supervisor.reached("queries compiled")
        from gscope.cli.capture_plan import capture_settings, job_streams
        from gscope.cli.interfaces import ensure_there

        ensure_there(self.interfaces)
        if not job_streams(program):
            supervisor.drop_job()
        supervisor.start_capture(
            program, capture_settings(program, self.interfaces, self.config, self.bounds)
        )
        # Imported while the daemon starts: it takes as long.
        from gscope.cli.answers import Answers
        from gscope.cli.passthrough import Passthrough

        sink = _sink(program, self.config.output_format, self.folder)
        is_complete = False
        try:
            answers = Answers(program, supervisor.outputs, sink)
            supervisor.run(answers, Passthrough(program, supervisor.run_dir))
            is_complete = True
        finally:
            sink.close(is_complete=is_complete)
        return answers.rows


def _sink(program: Program, kind: str | None, folder: Path | None) -> Sink:
    queries = [query for query, _ in program.results]
    if folder is not None:
        from gscope.cli.sinks import FolderSink

        return FolderSink(folder, kind or "csv", queries)
    is_terminal = sys.stdout.isatty()
    kind = kind or ("table" if is_terminal else "ndjson")
    if kind == "table":
        from gscope.cli.table import TableSink, terminal_width

        return TableSink(
            sys.stdout, queries, terminal_width() if is_terminal else None, is_styled=is_terminal
        )
    from gscope.cli.sinks import StreamSink

    return StreamSink(sys.stdout.buffer, kind, queries)


@contextmanager
def _signals(supervisor: Supervisor) -> Iterator[None]:
    """The first SIGINT or SIGTERM closes the windows, a second leaves at once."""
    before = {
        number: signal.signal(number, lambda n, _frame: supervisor.on_signal(n))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(outcome: Outcome, rows: dict[str, int], report: Report, config: Config) -> int:
    from gscope.cli.summary import is_whole, summary_lines
    from gscope.cli.timings import timing_lines

    if not report.is_quiet:
        for line in summary_lines(outcome, rows):
            click.echo(line, err=True)
    if report.has_timings:
        for line in timing_lines(outcome):
            click.echo(line, err=True)
    # like cat: the others are answered, and the exit code says that one was not
    refused = outcome.capture["refused"].values()
    for sentence in refused:
        click.echo(f"gscope: {sentence}; it was left out", err=True)
    if outcome.signal:
        return 128 + outcome.signal
    if refused:
        return EXIT_FAILED
    return EXIT_LOST if config.is_strict and not is_whole(outcome.capture) else 0
