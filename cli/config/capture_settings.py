"""The settings of the capture daemon for one run of a program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.capture.heartbeats.mode import HeartbeatMode
from gscope.capture.settings import CaptureSettings, ConsumerSettings
from gscope.engine.settings import JobSettings
from gscope.engine.watermarks.slack import least_skews
from gscope.errors import UsageError
from gscope.queries.plan.program import StreamInput, node_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.settings import InterfaceSettings, RelaySettings
    from gscope.cli.config.effective import Config
    from gscope.cli.config.run_limits import RunLimits
    from gscope.queries.plan.program import Input, Program

CONSUMER = "cli"
"""The name under which the command line acknowledges streams that are answers themselves."""


def capture_settings(
    program: Program,
    interfaces: Sequence[InterfaceSettings],
    config: Config,
    limits: RunLimits,
    relay: RelaySettings | None = None,
) -> CaptureSettings:
    """Return the settings of a daemon that runs until readers have acknowledged all messages.

    Args:
        program: the compiled queries.
        interfaces: its interfaces.
        config: the settings.
        limits: how fast and how long to capture.
        relay: the logs of other hosts that are read instead of packets; None to capture.

    Raises:
        UsageError: the queries read flow records where there are none.
    """
    readers = {
        JobSettings().consumer: job_streams(program),
        CONSUMER: _streams(program, [source for _, source in program.results]),
    }
    slack = least_skews(program)
    return CaptureSettings(
        interfaces=tuple(
            replace(
                each,
                skew_ns=max(each.skew_ns, slack.get(each.name, 0)),
                reads_flows=relay is None and _reads_flows(program, each),
            )
            for each in interfaces
        ),
        consumers=tuple(
            ConsumerSettings(name, streams) for name, streams in readers.items() if streams
        ),
        heartbeat_interval_ns=config.heartbeat_interval_ns,
        heartbeat_mode=_heartbeat_mode(config),
        speed=limits.speed,
        packets=limits.packets,
        duration_ns=limits.duration_ns,
        table_slots=config.table_slots,
        output_rows=config.output_rows,
        block_bytes=config.block_bytes,
        batch_rows=config.batch_rows,
        batch_bytes=config.batch_bytes,
        open_bytes=config.open_bytes,
        log_bytes=config.log_bytes,
        memory_bytes=config.memory_bytes,
        relay=relay,
    )


def job_streams(program: Program) -> tuple[str, ...]:
    """Return the streams that the HFTA job reads; () if the job has nothing to do.

    It has nothing to do without HFTAs, or if all HFTAs read interfaces that do not exist.
    """
    return _streams(program, [source for node in program.nodes for source in node_inputs(node)])


def _heartbeat_mode(config: Config) -> HeartbeatMode:
    """Return the mode of heartbeats: the clock ends alerts, and no operator demands it for them."""
    if config.alerts and config.heartbeat_mode is HeartbeatMode.ON_DEMAND:
        return HeartbeatMode.BOTH
    return config.heartbeat_mode


def _reads_flows(program: Program, interface: InterfaceSettings) -> bool:
    """Return whether the queries read flow records on ``interface``, otherwise packets."""
    lftas = [lfta for lfta in program.lftas if interface.name in lfta.interfaces]
    flows = [lfta for lfta in lftas if lfta.reads_flows]
    packets = next((lfta for lfta in lftas if not lfta.reads_flows), None)
    device = interface.device
    if device is not None and device.is_udp:
        if packets is not None:
            message = (
                f"{packets.query} reads {packets.protocol} on the interface {interface.name}, but"
                f" {device.device} receives flow records: write FROM FLOW, or name a network"
                " interface with -i"
            )
            raise UsageError(message)
        return True
    if not flows:
        return False
    if packets is not None:
        what, option = ("device", "-i ") if device is not None else ("capture", "")
        path = interface.files[0] if device is None else device.device
        message = (
            f"{flows[0].query} reads FLOW and {packets.query} reads {packets.protocol} on the"
            f" interface {interface.name}, which hands out flow records or packets: give the"
            f" {what} two names, as in {option}flows={path} {option}packets={path},"
            " and write FROM flows.FLOW"
        )
        raise UsageError(message)
    if device is not None and device.fanout > 1:
        message = (
            f"{flows[0].query} reads FLOW on {interface.name}: fanout {device.fanout} would divide"
            " what exporters say among threads; omit it"
        )
        raise UsageError(message)
    return True


def _streams(program: Program, sources: Sequence[Input]) -> tuple[str, ...]:
    lftas = dict.fromkeys(source.lfta for source in sources if isinstance(source, StreamInput))
    return tuple(stream for name in lftas for stream in program.lfta(name).streams)
