"""``gscope run``: live interfaces in, answers out."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.capture.confinement.privileges import OF_SUPERVISORS, keep_only
from gscope.capture.settings import SOURCES, TIMESTAMPS
from gscope.cli.commands.options import (
    Lines,
    option,
    quantity,
    with_config,
    with_deliver,
    with_output,
    with_queries,
    with_run_name,
)
from gscope.cli.config.quantities import parse_count, parse_positive_duration, parse_size
from gscope.cli.status.endpoint import parse_address, served
from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config
    from gscope.cli.session.detach import Detached
    from gscope.cli.session.lifecycle import Listener
    from gscope.cli.status.endpoint import Address


@click.command(short_help="Answer queries over live interfaces.")
@click.argument("named", nargs=-1, metavar="[QUERY]...")
@with_queries
@with_deliver
@option(
    "-i",
    "--interface",
    "interfaces",
    metavar="[NAME=]DEVICE",
    multiple=True,
    type=Lines(),
    help="Capture on DEVICE, as interface NAME (by default the name of the device). May be repeated. By default"
    " capture on the interfaces of the configuration file that have a device.",
)
@option(
    "-f",
    "--filter",
    "bpf",
    metavar="EXPRESSION",
    help="Capture only packets that match EXPRESSION, in the syntax of tcpdump (see pcap-filter(7)).",
)
@option(
    "-s",
    "--snaplen",
    metavar="BYTES",
    callback=quantity(parse_count),
    help="Truncate packets to BYTES. Default: 262144.",
)
@option(
    "--ring",
    metavar="SIZE",
    callback=quantity(parse_size),
    help="Size of the capture ring of each interface. Default: 64M.",
)
@option(
    "-p",
    "--no-promiscuous",
    "not_promiscuous",
    is_flag=True,
    help="Do not put devices into promiscuous mode.",
)
@option(
    "--fanout",
    metavar="N",
    callback=quantity(parse_count),
    help="Distribute the packets of each interface over N threads, by flow. Default: 1.",
)
@option(
    "--source",
    metavar="SOURCE",
    type=click.Choice(SOURCES),
    help="How to capture: af_packet (ring shared with the kernel), scapy (slow, for systems without AF_PACKET), or"
    " auto. Default: auto.",
)
@option(
    "--timestamps",
    metavar="CLOCK",
    type=click.Choice(TIMESTAMPS),
    help="Source of timestamps: kernel, hardware (the network card), or arrival (kernel, but late packets get the"
    " time that the interface has reached instead of being discarded). Default: kernel.",
)
@option(
    "--no-kernel-filter",
    "sees_all",
    is_flag=True,
    help="Do not derive a kernel filter from the queries; counters then include packets that no query reads.",
)
@option(
    "-c",
    "--count",
    metavar="N",
    callback=quantity(parse_count),
    help="Stop after N packets, over all interfaces.",
)
@option(
    "--duration",
    metavar="DURATION",
    callback=quantity(parse_positive_duration),
    help="Stop after DURATION.",
)
@option(
    "--skew",
    "skews",
    metavar="[NAME=]DURATION",
    multiple=True,
    type=Lines(),
    help="Accept packets of interface NAME (or of all) that reach gscope up to DURATION after their timestamp;"
    " delays answers by as much. At least 50ms. Default: 200ms.",
)
@with_output(
    "Append each result to a file in DIR as answers are emitted; parquet and arrow results are split into files"
    " of at most one minute."
)
@with_run_name(
    "Name of the run, for `gscope status` and `gscope stop`. Resumes the run if one of that name was killed."
    " Default: the name of the first query, made unique."
)
@option(
    "-d",
    "--detach",
    is_flag=True,
    help="Continue in the background once capture has started. Requires -w; stop it with `gscope stop`.",
)
@option(
    "--log-file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Log events, messages of the run's processes and the summary to FILE. Rotated files are FILE.1 to"
    " FILE.4.",
)
@option(
    "--metrics",
    metavar="[ADDRESS:]PORT",
    callback=quantity(parse_address),
    help="Serve Prometheus metrics at http://ADDRESS:PORT/metrics. PORT 0 picks a free port and reports it. Default"
    " address: 127.0.0.1.",
)
@with_config(without=("limits.block",))
def run(
    named: tuple[str, ...],
    queries: tuple[str, ...],
    expressions: tuple[str, ...],
    delivered: tuple[str, ...],
    parameters: tuple[str, ...],
    interfaces: tuple[str, ...],
    bpf: str | None,
    snaplen: int | None,
    ring: int | None,
    not_promiscuous: bool,
    fanout: int | None,
    source: str | None,
    timestamps: str | None,
    sees_all: bool,
    count: int | None,
    duration: int | None,
    skews: tuple[str, ...],
    folder: Path | None,
    timings: bool,
    quiet: bool,
    name: str | None,
    detach: bool,
    log_file: Path | None,
    metrics: Address | None,
    config: Config,
) -> int:
    """Answer GSQL queries over live interfaces until Ctrl-C, --count or --duration.

    QUERY is a file or the name of a library query. Rows are emitted when their epoch ends, even while
    interfaces are silent. Ctrl-C (or SIGTERM) closes all windows, emits the remaining answers and
    prints the loss summary; a second one exits immediately. Requires CAP_NET_RAW, and drops it once
    the sockets are open.

    \b
      gscope run top_talkers -i eth0
      gscope run flows.gsql -i in=eth0 -i out=eth1 -o csv
      gscope run -i eth0 -f 'udp port 53' -e 'SELECT time, srcIP, destIP FROM UDP'

    Exit codes: 0 success, 1 an interface or process failed, 2 usage or query error, 3 success but
    packets were lost (--strict), 128+n terminated by signal n.
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    began = time.monotonic()
    keep_only(OF_SUPERVISORS)
    from gscope.cli.config.capture_devices import Overrides, live_interfaces
    from gscope.cli.render.progress import watcher
    from gscope.cli.session.request import Asked, Bounds
    from gscope.cli.session.run_name import ensure_name
    from gscope.cli.session.session import Report, Run

    asked = Asked((*named, *queries), expressions, delivered, parameters)
    asked.ensure_some()
    overrides = Overrides(
        snaplen,
        ring,
        False if not_promiscuous else None,
        bpf,
        fanout,
        source,
        timestamps,
        False if sees_all else None,
    )
    chosen = live_interfaces(interfaces, skews, overrides, config.interfaces)
    bounds = Bounds(packets=count, duration_ns=duration)
    run = Run(
        asked,
        chosen,
        bounds,
        None,
        folder,
        config,
        None if name is None else ensure_name(name),
        log_file,
    )
    listeners: tuple[Listener, ...] = ()
    if detach:
        detached = _detached(folder)
        if isinstance(detached, int):
            return detached
        listeners = (detached.on_change,)
    shown = watcher(is_quiet=quiet or detach, is_live=True)
    with served(metrics) if metrics is not None else nullcontext() as endpoint:
        if endpoint is not None:
            listeners = (*listeners, endpoint.on_change)
            if metrics is not None and not metrics.port:
                shown.on_notice(f"serving metrics at {endpoint.url}")
        return run.answer(shown, Report(quiet, timings, config.is_strict), began, *listeners)


def _detached(folder: Path | None) -> Detached | int:
    """Move the run to the background; return the exit code in the process that stays."""
    from gscope.cli.session.detach import detach

    if folder is None:
        message = "a background run has no standard output; write answers to a folder with -w DIR"
        raise UsageError(message)
    return detach()
