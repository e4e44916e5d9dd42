"""``gscope run``: live interfaces in, answers out."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gscope.capture.process.confinement.privileges import OF_SUPERVISORS, keep_only
from gscope.capture.settings import SOURCES, TIMESTAMPS, InterfaceSettings
from gscope.cli.commands.input_options import requested_relay, with_hosts
from gscope.cli.commands.misplaced import refuse_misplaced
from gscope.cli.commands.option_groups import (
    count_option,
    filter_option,
    no_job_option,
    numeric_option,
    run_name_option,
    with_config,
    with_live_saving,
    with_output,
    with_queries,
)
from gscope.cli.commands.options import (
    HeadedCommand,
    Lines,
    option,
    option_group,
    quantity,
    switch_off,
)
from gscope.cli.commands.recording import recorded, refuse_answers
from gscope.cli.commands.sensor import requested_sensor
from gscope.cli.completion import candidates
from gscope.cli.config.capture_devices import Overrides
from gscope.cli.config.quantities import parse_count, parse_positive_duration, parse_size
from gscope.cli.config.run_limits import RunLimits
from gscope.cli.status.endpoint import parse_address, served
from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.settings import RelaySettings
    from gscope.cli.commands.option_groups import OutputRequest
    from gscope.cli.config.effective import Config
    from gscope.cli.config.relay_inputs import InputRequest
    from gscope.cli.config.saving import SaveRequest
    from gscope.cli.session.detach import Detached
    from gscope.cli.session.hosts import HostsOfRun
    from gscope.cli.session.lifecycle import Listener
    from gscope.cli.session.request import QueryRequest
    from gscope.cli.session.session import Session
    from gscope.cli.status.endpoint import Address


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """The devices that a command line names.

    Attributes:
        devices: ``DEVICE``, ``NAME=DEVICE`` or the name of a configured interface; () for all
            configured interfaces that have a device.
        skews: ``DURATION`` for all interfaces or ``NAME=DURATION`` for one.
    """

    devices: tuple[str, ...] = ()
    skews: tuple[str, ...] = ()


with_devices = option_group(
    "inputs",
    DeviceRequest,
    option(
        "-i",
        "--interface",
        "devices",
        heading="Capture",
        metavar="[NAME=]DEVICE",
        multiple=True,
        shell_complete=candidates.devices,
        type=Lines(),
        help="Capture on the network device DEVICE, or receive flow records on a UDP port:"
        " udp://ADDRESS:PORT (default port: 2055). Queries refer to it as NAME (default: DEVICE, or"
        " udp2055 for that port)."
        " NAME alone selects an interface of the configuration file. May be repeated."
        " Default: all interfaces of the configuration file that have a device.",
    ),
    option(
        "--skew",
        "skews",
        heading="Capture",
        metavar="[NAME=]DURATION",
        multiple=True,
        type=Lines(),
        help="Wait DURATION for packets that the kernel delivers with a delay, on interface NAME or"
        " on all: packets that arrive later than DURATION after their timestamp are counted as late"
        " and discarded, and answers are delayed by DURATION. At least 50ms. Default: 200ms.",
    ),
)

with_overrides = option_group(
    "overrides",
    Overrides,
    filter_option("Capture only packets that match EXPRESSION, in the syntax of pcap-filter(7)."),
    option(
        "-s",
        "--snaplen",
        heading="Capture",
        metavar="BYTES",
        callback=quantity(parse_count),
        help="Truncate packets to BYTES. Default: 262144.",
    ),
    option(
        "--ring",
        "ring_bytes",
        heading="Capture",
        metavar="SIZE",
        callback=quantity(parse_size),
        help="Size of the capture ring of each interface, or of the buffer of a UDP port."
        " Default: 64M.",
    ),
    option(
        "-p",
        "--no-promiscuous",
        "is_promiscuous",
        heading="Capture",
        is_flag=True,
        callback=switch_off,
        help="Do not put devices into promiscuous mode.",
    ),
    option(
        "--fanout",
        heading="Capture",
        metavar="N",
        callback=quantity(parse_count),
        help="Distribute the packets of each interface over N threads, by the groups of the queries"
        " or by flow. Default: 1.",
    ),
    option(
        "--source",
        heading="Capture",
        metavar="SOURCE",
        type=click.Choice(SOURCES),
        help="How to capture: af_packet (ring shared with the kernel), scapy (slow, for systems"
        " without AF_PACKET), or auto. Default: auto.",
    ),
    option(
        "--timestamps",
        heading="Capture",
        metavar="CLOCK",
        type=click.Choice(TIMESTAMPS),
        help="Source of timestamps: kernel, hardware (the network card), or arrival (kernel, but"
        " late packets get the time that the interface has reached instead of being discarded)."
        " Default: kernel.",
    ),
    option(
        "--no-kernel-filter",
        "has_kernel_filter",
        heading="Capture",
        is_flag=True,
        callback=switch_off,
        help="Do not derive a kernel filter from the queries; counters then include packets that"
        " no query reads.",
    ),
)

with_limits = option_group(
    "limits",
    RunLimits,
    count_option("Stop after N packets, counted over all interfaces."),
    option(
        "--duration",
        "duration_ns",
        heading="Capture",
        metavar="DURATION",
        callback=quantity(parse_positive_duration),
        help="Stop after DURATION.",
    ),
)


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """What a run is called, and how others follow it.

    Attributes:
        name: the name of the run; None for that of the first query, made unique.
        is_detached: whether the run continues in the background.
        log_file: the file that the run's log is written to as well; None for none.
        metrics: the address at which Prometheus metrics are served; None for none.
        has_no_job: whether the run is a sensor, which answers nothing itself.
    """

    name: str | None = None
    is_detached: bool = False
    log_file: Path | None = None
    metrics: Address | None = None
    has_no_job: bool = False


_NAME = run_name_option(
    "Name of the run, for `gscope status` and `gscope stop`. Resumes the run of that name if it was"
    " killed or failed. Default: the name of the first query, made unique."
)
_FOLLOWED = (
    option(
        "--log-file",
        heading="Runs and monitoring",
        metavar="FILE",
        shell_complete=candidates.files,
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write events, messages of the run's processes and the summary to FILE. Rotated files"
        " are FILE.1 to FILE.4.",
    ),
    option(
        "--metrics",
        heading="Runs and monitoring",
        metavar="[ADDRESS:]PORT",
        callback=quantity(parse_address),
        help="Serve Prometheus metrics at http://ADDRESS:PORT/metrics. PORT 0 picks a free port and"
        " reports it. Default address: 127.0.0.1.",
    ),
)


def _detach_option(text: str) -> Callable[[Any], Any]:
    return option(
        "-d",
        "--detach",
        "is_detached",
        heading="Runs and monitoring",
        is_flag=True,
        help=text,
    )


with_service = option_group(
    "service",
    ServiceRequest,
    _NAME,
    _detach_option(
        "Continue in the background once capture has started; requires -w, or --no-job."
        " `gscope stop` stops the run."
    ),
    *_FOLLOWED,
    no_job_option,
)
with_relay_service = option_group(
    "service",
    ServiceRequest,
    _NAME,
    _detach_option(
        "Continue in the background once inputs are being read. `gscope stop` stops the relay."
    ),
    *_FOLLOWED,
)
"""As ``with_service``, for a command that has no job."""


@click.command(cls=HeadedCommand, short_help="Answer queries over live interfaces.")
@click.argument("named", nargs=-1, metavar="[QUERY]...", shell_complete=candidates.query_sources)
@with_queries
@with_hosts
@with_devices
@with_overrides
@with_limits
@with_output(
    "Append each result to a file in DIR as answers are emitted; parquet and arrow results are"
    " split into files of at most one minute."
)
@with_live_saving
@numeric_option
@with_service
@with_config(without=("limits.block",))
def run(
    request: QueryRequest,
    remote: InputRequest,
    inputs: DeviceRequest,
    overrides: Overrides,
    limits: RunLimits,
    output: OutputRequest,
    saving: SaveRequest | None,
    service: ServiceRequest,
    config: Config,
) -> int:
    """Answer GSQL queries over live interfaces, or over the rows of sensors on other hosts.

    QUERY is a file or the name of a library query. The run ends with Ctrl-C, --count or --duration.
    Rows are emitted when their epoch ends, even while interfaces are silent. Ctrl-C (or SIGTERM)
    closes all windows, emits the remaining answers and prints the loss summary; a second one exits
    immediately. Capturing requires CAP_NET_RAW, which is dropped once the sockets are open.

    \b
      gscope run top_talkers -i eth0
      gscope run -i eth0 -o view
      gscope run flows.gsql -i in=eth0 -i out=eth1 -o csv
      gscope run -i eth0 -f 'udp port 53' -e 'SELECT time, srcIP, destIP FROM UDP'
      gscope run flows.gsql -i eth0 --no-job --listen 10.0.0.1:9470 --tls-certificate tls.crt \\
          --tls-key tls.key --token-file token
      gscope run flows.gsql --from sensor1:9470 --from sensor2:9470 --tls-ca ca.pem \\
          --token-file token
      gscope run flows.gsql --host a=host1:9480 --tls-ca ca.pem --token-file token --record \\
          --run friday

    Exit codes: 0 success, 1 an interface or process failed, 2 usage or query error, 3 success but
    packets were lost (--strict), 128+n ended by signal n: 130 by Ctrl-C and 143 by `gscope stop`,
    also with --strict and after a clean stop. To test for 3, end the run with --duration or -c.
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    began = time.monotonic()
    keep_only(OF_SUPERVISORS)
    relay = requested_relay(remote, inputs, overrides, limits, saving, config)
    asked = Inputs(began, request, inputs, overrides, limits, relay, remote)
    if remote.is_recording:
        refuse_answers(output, service)
        from gscope.cli.config.shedding import config_of_reader

        session = _session(asked, output, saving, service, config_of_reader(config))
        return recorded(session, output)
    return answer(asked, output, saving, service, config)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a run answers, and from what.

    Attributes:
        began: ``time.monotonic()`` when the command began.
        request: the queries.
        devices: the devices, or the names of interfaces for a relay.
        overrides: the settings for all devices.
        limits: how long to capture.
        relay: the logs of other hosts that are read instead of devices; None to capture.
        remote: what the command line says of other hosts; None for a relay.
    """

    began: float
    request: QueryRequest
    devices: DeviceRequest
    overrides: Overrides
    limits: RunLimits
    relay: RelaySettings | None
    remote: InputRequest | None = None

    @property
    def asks_agents(self) -> bool:
        """Whether agents of other hosts are asked to capture."""
        return self.relay is not None and self.remote is not None and not self.remote.inputs

    def interfaces(self, config: Config, hosts: HostsOfRun | None) -> tuple[InterfaceSettings, ...]:
        """Return the interfaces of the program.

        Raises:
            UsageError: there is none, or one is invalid.
        """
        from gscope.cli.config.capture_devices import live_interfaces
        from gscope.cli.config.relay_inputs import named_interfaces

        if hosts is not None:
            return tuple(InterfaceSettings(name) for name in hosts.interfaces)
        if self.relay is not None:
            return named_interfaces(self.devices.devices)
        devices = self.devices
        return live_interfaces(devices.devices, devices.skews, self.overrides, config.interfaces)


def answer(
    inputs: Inputs,
    output: OutputRequest,
    saving: SaveRequest | None,
    service: ServiceRequest,
    config: Config,
) -> int:
    """Run until the end, and return the exit code."""
    from gscope.cli.config.listening import listening
    from gscope.cli.config.row_metrics import ensure_served
    from gscope.cli.config.shedding import config_of_reader
    from gscope.cli.render.progress import run_observer
    from gscope.cli.session.end_report import EndReport

    if inputs.relay is not None:
        config = config_of_reader(config)
    session = None
    if not inputs.asks_agents:
        session = _session(inputs, output, saving, service, config)
    listeners: tuple[Listener, ...] = ()
    detached: Detached | None = None
    sensor = requested_sensor(config, output, saving, has_no_job=service.has_no_job)
    ensure_served(config, is_served=service.metrics is not None)
    if service.is_detached:
        found = _detached(output.folder, is_sensor=sensor is not None)
        if isinstance(found, int):
            return found
        detached = found
        listeners = (detached.on_change,)
    if session is None:
        # The client of agents starts threads, which a process that detaches must not have.
        session = _session(inputs, output, saving, service, config)
    shown = run_observer(
        is_quiet=output.is_quiet or service.is_detached,
        has_progress=not output.hides_progress,
        is_live=True,
    )
    metrics = service.metrics
    with (
        served(metrics) if metrics is not None else nullcontext() as endpoint,
        listening(sensor) if sensor is not None else nullcontext() as listener,
    ):
        if listener is not None:
            session = replace(session, listener=listener)
            if detached is not None:
                detached.served_at = listener.address
            shown.on_notice(f"serving rows at {listener.address}")
        if endpoint is not None:
            listeners = (*listeners, endpoint.on_change)
            session = replace(session, metrics=endpoint.url, show_rows=endpoint.show_rows)
            if metrics is not None and not metrics.port:
                shown.on_notice(f"serving metrics at {endpoint.url}")
        report = EndReport(output.is_quiet, output.has_timings, config.is_strict)
        return session.answer(shown, report, inputs.began, *listeners)


def _session(
    inputs: Inputs,
    output: OutputRequest,
    saving: SaveRequest | None,
    service: ServiceRequest,
    config: Config,
) -> Session:
    from gscope.cli.session.board import with_board
    from gscope.cli.session.run_name import ensure_name
    from gscope.cli.session.session import Session

    request = with_board(inputs.request, config)
    refuse_misplaced(
        request.queries,
        "a query file",
        filter_option="-f",
        takes_names=True,
        has_texts=bool(request.expressions) or len(request.queries) > 1,
    )
    request.ensure_some()
    hosts = None
    if inputs.asks_agents:
        from gscope.cli.session.hosts import requested_hosts

        assert inputs.relay is not None
        assert inputs.remote is not None
        if service.has_no_job:
            message = (
                "a run that asks agents of other hosts to capture answers its queries itself; "
                "leave out --no-job"
            )
            raise UsageError(message)
        chosen, given = inputs.devices.devices, inputs.remote.partition_set
        hosts = requested_hosts(inputs.relay, chosen, given, service.name, config.work_dir)
    return Session(
        request,
        inputs.interfaces(config, hosts),
        inputs.limits,
        None,
        output.folder,
        config,
        None if service.name is None else ensure_name(service.name),
        service.log_file,
        saving,
        relay=inputs.relay,
        hosts=hosts,
    )


def _detached(folder: Path | None, *, is_sensor: bool) -> Detached | int:
    """Move the run to the background; return the exit code in the process that stays."""
    from gscope.cli.session.detach import detach

    if folder is None and not is_sensor:
        message = "a background run has no standard output; write answers to a folder with -w DIR"
        raise UsageError(message)
    return detach()
