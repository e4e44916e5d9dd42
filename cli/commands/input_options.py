"""``--from`` and the options that describe the logs of other hosts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.cli.commands.options import Lines, option, option_group, quantity
from gscope.cli.completion import candidates
from gscope.cli.config.quantities import parse_positive_duration
from gscope.cli.config.relay_inputs import InputRequest
from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.capture.settings import RelaySettings
    from gscope.cli.commands.run import DeviceRequest
    from gscope.cli.config.capture_devices import Overrides
    from gscope.cli.config.effective import Config
    from gscope.cli.config.run_limits import RunLimits
    from gscope.cli.config.saving import SaveRequest

HEADING = "Other hosts"

_FROM = option(
    "--from",
    "inputs",
    heading=HEADING,
    metavar="[NAME=]HOST:PORT",
    multiple=True,
    type=Lines(),
    help="Read the rows that a sensor or a relay serves at HOST:PORT, instead of packets."
    " NAME is its name in `gscope status` (default: HOST:PORT). May be repeated.",
)
_HOST = option(
    "--host",
    "hosts",
    heading=HEADING,
    metavar="NAME[=HOST:PORT]",
    multiple=True,
    shell_complete=candidates.hosts,
    type=Lines(),
    help="Let the agent (`gscope capture --listen`) at HOST:PORT capture, and read its rows."
    " Queries refer to an interface of it as NAME.INTERFACE. NAME alone selects a host of the"
    " configuration file. May be repeated. Default: all hosts of the configuration file, if it has"
    " no device and neither -i nor --from is given.",
)
_RECORD = option(
    "--record",
    "is_recording",
    heading=HEADING,
    is_flag=True,
    help="Let the hosts capture and keep the rows on their disks, and exit once they do; captures"
    " of files are replayed first. `gscope run --run NAME` with the same queries and hosts answers"
    " later, `gscope stop --run NAME` discards the rows.",
)
_SET = option(
    "--partition-set",
    heading=HEADING,
    metavar="GSQL,...",
    shell_complete=candidates.query_text,
    help="What divides the packets among the hosts, such as 'srcIP & 0xFFFFFF00, destIP' or"
    " '{srcIP, destIP}' for both directions alike. Each host then answers the queries that this"
    " permits, and sends answers in place of partial tuples. `gscope explain --hosts` shows which.",
)
_SHARED = (
    option(
        "--tls-ca",
        "certificates",
        heading=HEADING,
        metavar="FILE",
        shell_complete=candidates.files,
        type=click.Path(dir_okay=False, path_type=Path),
        help="Certificates to trust for --from and --host, in PEM. Required beyond loopback.",
    ),
    option(
        "--as",
        "consumer",
        heading=HEADING,
        metavar="CONSUMER",
        help="Name under which inputs keep rows until they are acknowledged, also after Ctrl-C."
        " Default: a name that is stored with the run, and forgotten when it ends.",
    ),
    option(
        "--absent-after",
        "absent_after_ns",
        heading=HEADING,
        metavar="DURATION",
        callback=quantity(parse_positive_duration),
        help="Continue without an input that has been silent for DURATION; its rows of epochs that"
        " end meanwhile are late if it returns. At least --failure-timeout (5s by default)."
        " Default: wait for it.",
    ),
)

with_inputs = option_group("remote", InputRequest, _FROM, *_SHARED)
"""``--from`` and what belongs to it; the command gets ``remote``."""

with_hosts = option_group("remote", InputRequest, _FROM, _HOST, _RECORD, _SET, *_SHARED)
"""The same with ``--host``, for a command that can ask agents to capture."""


def requested_relay(
    remote: InputRequest,
    devices: DeviceRequest,
    overrides: Overrides,
    limits: RunLimits,
    saving: SaveRequest | None,
    config: Config,
) -> RelaySettings | None:
    """Return the logs of other hosts that a run reads; None if it captures.

    Raises:
        UsageError: options contradict each other, or one is invalid.
    """
    from gscope.cli.config.hosts import host_inputs, hosts_by_default
    from gscope.cli.config.relay_inputs import relay_settings

    has_hosts = bool(remote.hosts) or hosts_by_default(remote, devices.devices, config)
    if not remote.inputs and not has_hosts:
        remote.ensure_unused()
        return None
    for given, is_given in (
        ("--skew", bool(devices.skews)),
        ("--count", limits.packets is not None),
        ("--duration", limits.duration_ns is not None),
        ("--save-packets", saving is not None),
        *(
            (f"--{name.removeprefix('is_').removesuffix('_bytes').replace('_', '-')}", True)
            for name in overrides.__slots__
            if getattr(overrides, name) is not None
        ),
    ):
        if is_given:
            message = (
                f"{given} is about capturing, and has no meaning with --from or --host; give it to "
                "the sensors, or to the agents"
            )
            raise UsageError(message)
    if has_hosts:
        return host_inputs(remote, config)
    if remote.is_recording:
        message = "--record is about the agents of --host: sensors keep their rows in any case"
        raise UsageError(message)
    if remote.partition_set is not None:
        message = "--partition-set is about the agents of --host: sensors answer no queries"
        raise UsageError(message)
    return relay_settings(remote, config)
