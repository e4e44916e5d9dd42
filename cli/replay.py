"""``gscope replay``: captures in, answers out."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.cli import options
from gscope.cli.interfaces import interfaces_of
from gscope.errors import UsageError

if TYPE_CHECKING:
    from types import FrameType

    from gscope.capture.settings import CaptureSettings
    from gscope.cli.answers import Sink
    from gscope.cli.config import Config
    from gscope.queries.plan.program import Program


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="[NAME=]CAPTURE...")
@options.queries
@options.output
@options.replay_settings
@options.configuration
def replay(
    captures: tuple[str, ...],
    query_files: tuple[str, ...],
    query_texts: tuple[str, ...],
    only: tuple[str, ...],
    parameters: tuple[str, ...],
    output_format: str | None,
    folder: Path | None,
    strict: bool | None,
    timings: bool,
    quiet: bool,
    work_dir: Path | None,
    config: Config,
) -> None:
    """Answer GSQL queries over captures: pcap or pcapng, compressed or not, ``-`` for standard input.

    Each capture is an interface with the file's base name, or NAME. One NAME given several times is
    one interface, read in that order.
    """
    began = time.monotonic()
    texts = options.query_texts(query_files, query_texts)
    files = interfaces_of(captures)

    from gscope.cli.run_dir import RunDir
    from gscope.cli.supervisor import Supervisor
    from gscope.engine.settings import EngineSettings

    with RunDir(work_dir or config.work_dir) as run_dir_holder:
        watcher = options.watcher(quiet=quiet)
        supervisor = Supervisor(run_dir_holder.path, watcher, began)
        try:
            # before the queries compile: starting Java is the longest part of a small run
            supervisor.start_job(
                EngineSettings(cores=config.spark_cores, heap_bytes=config.spark_memory_bytes)
            )
            program = options.compile_texts(texts, tuple(files), config, only, parameters)
            if not program.needs_spark:
                supervisor.drop_job()
            _answer(supervisor, program, files, config, output_format, folder, began)
        finally:
            supervisor.stop()
            watcher.close()
    options.report(supervisor.outcome, quiet=quiet, timings=timings)
    if strict if strict is not None else config.strict:
        options.ensure_whole(supervisor.outcome)
