"""``gscope replay``: captures in, answers out."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from gscope.capture.privileges import OF_SUPERVISORS, keep_only
from gscope.cli.interfaces import STDIN, chosen_interfaces
from gscope.cli.options import (
    Lines,
    option,
    with_config,
    with_deliver,
    with_interfaces,
    with_output,
    with_queries,
    with_run_name,
)
from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.settings import InterfaceSettings
    from gscope.cli.config import Config


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
    help="Count packets of an interface (or of all) that step back in time by at most DURATION. "
    "Default: enough to count every packet of regular files; 10s for pipes.",
)
@option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    metavar="X",
    help="Replay at X times the speed of the trace; by default as fast as possible.",
)
@with_output("Write each result to a file in DIR, which appears when it is complete.")
@with_run_name(
    "What the run is called, for `gscope status` and `gscope stop`. Default: the name of the first query,"
    " made unique."
)
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
    name: str | None,
    config: Config,
) -> int:
    """Answer GSQL queries over captures: pcap or pcapng, compressed or not, - for standard input.

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
    keep_only(OF_SUPERVISORS)
    from gscope.cli.answering import Report, Run
    from gscope.cli.asked import Asked
    from gscope.cli.capture_plan import Bounds, expected_bytes
    from gscope.cli.run_name import ensure_name
    from gscope.cli.watchers import watcher

    asked = Asked(queries, expressions, delivered, parameters)
    asked.ensure_some()
    chosen = chosen_interfaces(captures, interfaces, skews, config.interfaces)
    _ensure_piped(chosen)
    name = None if name is None else ensure_name(name)
    run = Run(asked, chosen, Bounds(speed=speed), expected_bytes(chosen), folder, config, name)
    return run.answer(watcher(is_quiet=quiet), Report(quiet, timings, config.is_strict), began)


def _ensure_piped(interfaces: tuple[InterfaceSettings, ...]) -> None:
    if any(STDIN in interface.files for interface in interfaces) and sys.stdin.isatty():
        message = "standard input is a terminal; pipe a capture into it, or name a file"
        raise UsageError(message)
