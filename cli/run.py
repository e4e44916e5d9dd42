"""``gscope run``: live interfaces in, answers out."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.capture.privileges import OF_SUPERVISORS, keep_only
from gscope.capture.settings import SOURCES, TIMESTAMPS
from gscope.cli.options import (
    Lines,
    option,
    quantity,
    with_config,
    with_deliver,
    with_output,
    with_queries,
    with_run_name,
)
from gscope.cli.quantities import parse_count, parse_positive_duration, parse_size
from gscope.cli.status.endpoint import parse_address, served
from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.config import Config
    from gscope.cli.detach import Detached
    from gscope.cli.life import Listener
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
    help="Capture on this device, as an interface of that name. May be repeated. "
    "By default the interfaces of the configuration that have a device.",
)
@option(
    "-f",
    "--filter",
    "bpf",
    metavar="EXPRESSION",
    help="Let the kernel take only packets that match, as in tcpdump (see pcap-filter(7)).",
)
@option(
    "-s",
    "--snaplen",
    metavar="BYTES",
    callback=quantity(parse_count),
    help="Capture at most so much of a packet. Default: 262144.",
)
@option(
    "--ring",
    metavar="SIZE",
    callback=quantity(parse_size),
    help="Memory for packets that wait, for each interface. Default: 64M.",
)
@option(
    "-p",
    "--no-promiscuous",
    "not_promiscuous",
    is_flag=True,
    help="Take only packets that are for this host.",
)
@option(
    "--fanout",
    metavar="N",
    callback=quantity(parse_count),
    help="Share the packets of each interface among N threads, flow by flow. Default: 1.",
)
@option(
    "--source",
    metavar="SOURCE",
    type=click.Choice(SOURCES),
    help="What captures: af_packet (the kernel's ring), scapy (slow, where there is no AF_PACKET), or auto.",
)
@option(
    "--timestamps",
    metavar="CLOCK",
    type=click.Choice(TIMESTAMPS),
    help="Who stamps packets: kernel, hardware (the network card), or arrival (kernel, but a packet that"
    " comes too late gets the time that is reached). Default: kernel.",
)
@option(
    "--no-kernel-filter",
    "sees_all",
    is_flag=True,
    help="Let the kernel hand over also what no query can want, so that counters count it.",
)
@option(
    "-c",
    "--count",
    metavar="N",
    callback=quantity(parse_count),
    help="Stop after N packets of all interfaces together.",
)
@option(
    "--duration",
    metavar="DURATION",
    callback=quantity(parse_positive_duration),
    help="Stop after so long.",
)
@option(
    "--skew",
    "skews",
    metavar="[NAME=]DURATION",
    multiple=True,
    type=Lines(),
    help="How long after its stamp a packet of an interface (or of all) may reach gscope and still count "
    "as in time; answers come later by as much. Default: 200ms, at least 50ms.",
)
@with_output(
    "Append each result to a file in DIR, with every answer; parquet and arrow come in parts of at most"
    " a minute."
)
@with_run_name(
    "What the run is called, for `gscope status` and `gscope stop`. A run of that name that was killed is"
    " resumed. Default: the name of the first query, made unique."
)
@option(
    "-d",
    "--detach",
    is_flag=True,
    help="Go on in the background when packets are captured. Needs -w; `gscope stop` ends it.",
)
@option(
    "--log-file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the run's log: what happened, what its processes complained of, the summary. Old parts"
    " are FILE.1 to FILE.4.",
)
@option(
    "--metrics",
    metavar="[ADDRESS:]PORT",
    callback=quantity(parse_address),
    help="Serve metrics for Prometheus on http://ADDRESS:PORT/metrics. Default address: 127.0.0.1;"
    " for PORT 0 a free one is found and told.",
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

    QUERY is a file, or a query of the library by name. Rows come when their epoch is over, also on
    silent interfaces. Ctrl-C (or SIGTERM) closes the windows, answers what there is and tells what
    became of every packet; a second one leaves at once. Needs CAP_NET_RAW, and gives it up when the
    sockets are open.

    \b
      gscope run top_talkers -i eth0
      gscope run flows.gsql -i in=eth0 -i out=eth1 -o csv
      gscope run -i eth0 -f 'udp port 53' -e 'SELECT time, srcIP, destIP FROM UDP'

    Exit codes: 0 answered, 1 an interface or process failed, 2 wrong usage or query, 3 answered but
    something was lost (--strict), 128+n ended by signal n.
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    began = time.monotonic()
    keep_only(OF_SUPERVISORS)
    from gscope.cli.answering import Report, Run
    from gscope.cli.asked import Asked
    from gscope.cli.capture_plan import Bounds
    from gscope.cli.live_interfaces import Overrides, live_interfaces
    from gscope.cli.run_name import ensure_name
    from gscope.cli.watchers import watcher

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
                shown.on_notice(f"metrics are served on {endpoint.url}")
        return run.answer(shown, Report(quiet, timings, config.is_strict), began, *listeners)


def _detached(folder: Path | None) -> Detached | int:
    """Go into the background; in the process that stays, the exit code."""
    from gscope.cli.detach import detach

    if folder is None:
        message = (
            "a run in the background has no standard output; name a folder for answers with -w DIR"
        )
        raise UsageError(message)
    return detach()
