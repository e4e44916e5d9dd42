"""``gscope replay``: captures in, answers out."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gscope.capture.process.confinement.privileges import OF_SUPERVISORS, keep_only
from gscope.cli.commands.misplaced import refuse_misplaced
from gscope.cli.commands.option_groups import (
    count_option,
    filter_option,
    no_job_option,
    numeric_option,
    pager_option,
    run_name_option,
    with_config,
    with_output,
    with_queries,
    with_saving,
)
from gscope.cli.commands.options import HeadedCommand, Lines, option, option_group
from gscope.cli.commands.sensor import requested_sensor
from gscope.cli.completion import candidates
from gscope.cli.config.capture_files import (
    STDIN,
    chosen_interfaces,
    ensure_countable,
    filtered_interfaces,
)
from gscope.cli.config.setting_groups import OF_METRICS
from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.capture.settings import InterfaceSettings
    from gscope.cli.commands.option_groups import OutputRequest
    from gscope.cli.config.effective import Config
    from gscope.cli.config.saving import SaveRequest
    from gscope.cli.session.request import QueryRequest


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """The captures that a command line names.

    Attributes:
        captures: ``FILE`` or ``NAME=FILE``, as arguments.
        read: the same, given with ``-r``; with no capture in either, the configured interfaces that
            have files are read.
        filter: an expression of pcap-filter(7); None for every packet.
        packets: the number of packets after which the replay ends; None for no limit.
        interfaces: names of the interfaces to read; () for all.
        skews: ``DURATION`` for all interfaces or ``NAME=DURATION`` for one.
        speed: the speed as a multiple of that of the trace; None for as fast as possible.
    """

    captures: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    filter: str | None = None
    packets: int | None = None
    interfaces: tuple[str, ...] = ()
    skews: tuple[str, ...] = ()
    speed: float | None = None

    @property
    def all_captures(self) -> tuple[str, ...]:
        """All captures, in the order in which files of one interface are read."""
        return (*self.read, *self.captures)


with_captures = option_group(
    "inputs",
    CaptureRequest,
    option(
        "-r",
        "--read",
        "read",
        heading="Capture",
        metavar="[NAME=]CAPTURE",
        multiple=True,
        shell_complete=candidates.captures,
        type=Lines(),
        help="Read CAPTURE, like an argument; those given with -r come first. May be repeated.",
    ),
    filter_option(
        "Read only packets that match EXPRESSION, in the syntax of pcap-filter(7), as `tcpdump -r`"
        " does; the others are counted as filtered."
    ),
    count_option(
        "Stop after N packets: the first that match -f, in the order of time over all interfaces."
    ),
    option(
        "-i",
        "--interface",
        "interfaces",
        heading="Capture",
        metavar="NAME",
        multiple=True,
        shell_complete=candidates.interfaces,
        type=Lines(),
        help="Read only interface NAME: a given capture, or an interface of the configuration file."
        " May be repeated. Default: all.",
    ),
    option(
        "--skew",
        "skews",
        heading="Capture",
        metavar="[NAME=]DURATION",
        multiple=True,
        type=Lines(),
        help="Tolerate timestamps that step back by at most DURATION, on interface NAME or on all;"
        " packets further behind are counted as late and discarded. Default: enough to accept every"
        " packet of regular files; 10s for pipes and for captures too large to scan first.",
    ),
    option(
        "--speed",
        heading="Capture",
        type=click.FloatRange(min=0, min_open=True),
        metavar="X",
        help="Replay at X times the speed of the trace. Default: as fast as possible.",
    ),
)


@click.command(cls=HeadedCommand, short_help="Answer queries over captures.")
@click.argument(
    "captures", nargs=-1, metavar="[NAME=]CAPTURE...", shell_complete=candidates.captures
)
@with_queries
@with_captures
@with_output("Write each result to a file in DIR, which appears when it is complete.")
@with_saving
@pager_option
@numeric_option
@no_job_option
@run_name_option(
    "Name of the run, for `gscope status` and `gscope stop`. Default: the name of the first query,"
    " made unique."
)
@with_config(without=OF_METRICS)
def replay(
    request: QueryRequest,
    inputs: CaptureRequest,
    output: OutputRequest,
    saving: SaveRequest | None,
    is_unpaged: bool,
    has_no_job: bool,
    name: str | None,
    config: Config,
) -> int:
    """Answer GSQL queries over captures: pcap or pcapng, compressed or not; - reads standard input.

    Queries FROM FLOW also read files of nfcapd.

    Each capture is an interface called NAME, by default the base name of the file (main1 for
    a/main1.pcap.gz). Captures with the same NAME form one interface and are read in the given
    order. Without captures, reads the interfaces of the configuration file that have files.

    \b
      gscope replay trace.pcap -q top_talkers
      gscope replay a.pcap -e 'SELECT minute, count(*) FROM TCP GROUP BY minute(time)'
      gscope replay in=a.pcap out=b.pcap -q flows.gsql -o csv -w answers

    Exit codes: 0 success, 1 a capture or process failed, 2 usage or query error, 3 success but
    packets or input were lost (--strict), 128+n terminated by signal n.
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    began = time.monotonic()
    keep_only(OF_SUPERVISORS)
    from gscope.cli.config.listening import listening
    from gscope.cli.config.run_limits import RunLimits
    from gscope.cli.config.shedding import config_of_replay
    from gscope.cli.render.pager import pager_command
    from gscope.cli.render.progress import run_observer
    from gscope.cli.session.board import with_board
    from gscope.cli.session.end_report import EndReport
    from gscope.cli.session.reporting import with_overview
    from gscope.cli.session.request import expected_bytes
    from gscope.cli.session.run_name import ensure_name
    from gscope.cli.session.session import Session

    for captures in (inputs.read, inputs.captures):
        refuse_misplaced(captures, "a capture", filter_option="-f", takes_names=False)
    refuse_misplaced(request.queries, "a query file", filter_option=None, takes_names=True)
    request = with_overview(with_board(request, config), config)
    request.ensure_some()
    chosen = chosen_captures(inputs, config)
    config = config_of_replay(config)
    session = Session(
        request,
        chosen,
        RunLimits(inputs.speed, inputs.packets),
        expected_bytes(chosen),
        output.folder,
        config,
        None if name is None else ensure_name(name),
        saving=saving,
        pager=None if is_unpaged else pager_command(),
    )
    report = EndReport(output.is_quiet, output.has_timings, config.is_strict)
    observer = run_observer(is_quiet=output.is_quiet, has_progress=not output.hides_progress)
    sensor = requested_sensor(config, output, saving, has_no_job=has_no_job)
    if sensor is None:
        return session.answer(observer, report, began)
    with listening(sensor) as listener:
        observer.on_notice(f"serving rows at {listener.address}")
        return replace(session, listener=listener).answer(observer, report, began)


def chosen_captures(inputs: CaptureRequest, config: Config) -> tuple[InterfaceSettings, ...]:
    """Return the interfaces that a command line names, each with its files.

    Raises:
        UsageError: a name, a filter or a number of packets is invalid.
    """
    chosen = chosen_interfaces(
        inputs.all_captures, inputs.interfaces, inputs.skews, config.interfaces
    )
    chosen = filtered_interfaces(chosen, inputs.filter)
    _ensure_piped(chosen)
    if inputs.packets is not None:
        ensure_countable(chosen)
    return chosen


def _ensure_piped(interfaces: tuple[InterfaceSettings, ...]) -> None:
    if any(STDIN in interface.files for interface in interfaces) and sys.stdin.isatty():
        message = "standard input is a terminal; pipe a capture into it or name a file"
        raise UsageError(message)
