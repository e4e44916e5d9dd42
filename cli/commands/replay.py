"""``gscope replay``: captures in, answers out."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from gscope.capture.confinement.privileges import OF_SUPERVISORS, keep_only
from gscope.cli.commands.options import (
    Lines,
    option,
    with_config,
    with_deliver,
    with_interfaces,
    with_output,
    with_queries,
    with_run_name,
)
from gscope.cli.config.capture_files import STDIN, chosen_interfaces
from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.settings import InterfaceSettings
    from gscope.cli.config.effective import Config


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
    help="Accept packets of interface NAME (or of all) whose timestamps step back by at most DURATION. Default:"
    " enough to accept every packet of regular files; 10s for pipes.",
)
@option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    metavar="X",
    help="Replay at X times the speed of the trace. By default as fast as possible.",
)
@with_output("Write each result to a file in DIR, which appears when it is complete.")
@with_run_name(
    "Name of the run, for `gscope status` and `gscope stop`. Default: the name of the first query, made unique."
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
    """Answer GSQL queries over captures: pcap or pcapng, compressed or not; - reads standard input.

    Each capture is an interface called NAME, by default the base name of the file (main1 for
    a/main1.pcap.gz). Captures with the same NAME form one interface and are read in the given order.
    Without captures, reads the interfaces of the configuration file that have files.

    \b
      gscope replay trace.pcap -q top_talkers
      gscope replay trace.pcap -e 'SELECT tb, count(*) FROM TCP GROUP BY time/60 as tb'
      gscope replay in=a.pcap out=b.pcap -q flows.gsql -o csv -w answers

    Exit codes: 0 success, 1 a capture or process failed, 2 usage or query error, 3 success but packets
    or input were lost (--strict), 128+n terminated by signal n.
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    began = time.monotonic()
    keep_only(OF_SUPERVISORS)
    from gscope.cli.render.progress import watcher
    from gscope.cli.session.request import Asked, Bounds, expected_bytes
    from gscope.cli.session.run_name import ensure_name
    from gscope.cli.session.session import Report, Run

    asked = Asked(queries, expressions, delivered, parameters)
    asked.ensure_some()
    chosen = chosen_interfaces(captures, interfaces, skews, config.interfaces)
    _ensure_piped(chosen)
    name = None if name is None else ensure_name(name)
    run = Run(asked, chosen, Bounds(speed=speed), expected_bytes(chosen), folder, config, name)
    return run.answer(watcher(is_quiet=quiet), Report(quiet, timings, config.is_strict), began)


def _ensure_piped(interfaces: tuple[InterfaceSettings, ...]) -> None:
    if any(STDIN in interface.files for interface in interfaces) and sys.stdin.isatty():
        message = "standard input is a terminal; pipe a capture into it or name a file"
        raise UsageError(message)
