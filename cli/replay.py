"""``gscope replay``: captures in, answers out."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.cli.interfaces import STDIN, chosen_interfaces, ensure_there
from gscope.cli.options import (
    Lines,
    option,
    with_config,
    with_deliver,
    with_interfaces,
    with_queries,
)
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.capture.settings import InterfaceSettings
    from gscope.cli.answers import Sink
    from gscope.cli.asked import Asked
    from gscope.cli.config import Config
    from gscope.cli.supervisor import Outcome, Supervisor
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


@click.command(short_help="Answer queries over captures.")
@click.argument("captures", nargs=-1, metavar="[NAME=]CAPTURE...")
@with_queries
@with_deliver
@with_interfaces
@option(
    "--skew",
    "skews",
    metavar="[NAME=]DURATION",
    multiple=True,
    type=Lines(),
    help="By how much packets of an interface (or of all) may step back in time and still count "
    "as in time. Default: 10s.",
)
@option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    metavar="X",
    help="Replay at X times the speed of the trace; by default as fast as possible.",
)
@option(
    "-w",
    "--write",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write each result to a file in DIR, which appears when it is complete.",
)
@option("--timings", is_flag=True, help="Say on standard error where the time went.")
@option("--quiet", is_flag=True, help="No progress and no summary on standard error.")
@with_config()
def replay(
    captures: tuple[str, ...],
    queries: tuple[str, ...],
    expressions: tuple[str, ...],
    delivered: tuple[str, ...],
    parameters: tuple[str, ...],
    interfaces: tuple[str, ...],
    skews: tuple[str, ...],
    speed: float | None,
    folder: Path | None,
    timings: bool,
    quiet: bool,
    config: Config,
) -> int:
    """Answer GSQL queries over captures: pcap or pcapng, compressed or not, ``-`` for standard input.

    A capture is an interface with the file's base name (a/main1.pcap.gz is main1), or NAME. One NAME
    given several times is one interface, read in that order. Without captures, the interfaces of the
    configuration are read.

    \b
      gscope replay trace.pcap -q top_talkers
      gscope replay trace.pcap -e 'SELECT tb, count(*) FROM TCP GROUP BY time/60 as tb'
      gscope replay in=a.pcap out=b.pcap -q flows.gsql -o csv -w answers

    Exit codes: 0 answered, 1 a capture or process failed, 2 wrong usage or query, 3 answered but
    something was lost (--strict), 128+n ended by signal n.
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    began = time.monotonic()
    from gscope.cli.asked import Asked
    from gscope.cli.capture_plan import expected_bytes
    from gscope.cli.run_dir import RunDir
    from gscope.cli.supervisor import Supervisor
    from gscope.cli.watchers import watcher
    from gscope.engine.settings import EngineSettings

    asked = Asked(queries, expressions, delivered, parameters)
    asked.ensure_some()
    chosen = chosen_interfaces(captures, interfaces, skews, config.interfaces)
    _ensure_piped(chosen)
    ensure_there(chosen)
    report = Report(quiet, timings)
    with RunDir(config.work_dir) as run_dir:
        supervisor = Supervisor(run_dir.path, watcher(is_quiet=quiet), began)
        try:
            # Before the queries compile: starting Java is the longest part of a small run.
            supervisor.start_job(
                EngineSettings(
                    cores=config.spark_cores,
                    heap_bytes=config.spark_memory_bytes,
                    expected_bytes=expected_bytes(chosen),
                )
            )
            run = _Run(asked, chosen, speed, folder, config)
            with _signals(supervisor):
                rows = run.answer(supervisor)
        finally:
            supervisor.stop()
    return _report(supervisor.outcome, rows, report, config)


@dataclass(frozen=True, slots=True)
class _Run:
    asked: Asked
    interfaces: tuple[InterfaceSettings, ...]
    speed: float | None
    folder: Path | None
    config: Config

    def answer(self, supervisor: Supervisor) -> dict[str, int]:
        """Compile, capture, deliver; rows by query."""
        from gscope.cli.query_texts import compile_asked

        names = tuple(interface.name for interface in self.interfaces)
        program = compile_asked(self.asked, names, self.config).program
        supervisor.reached("queries compiled")
        from gscope.cli.capture_plan import capture_settings, job_streams

        if not job_streams(program):
            supervisor.drop_job()
        supervisor.start_capture(
            program, capture_settings(program, self.interfaces, self.config, self.speed)
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


def _ensure_piped(interfaces: tuple[InterfaceSettings, ...]) -> None:
    if any(STDIN in interface.files for interface in interfaces) and sys.stdin.isatty():
        message = "standard input is a terminal; pipe a capture into it, or name a file"
        raise UsageError(message)


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
