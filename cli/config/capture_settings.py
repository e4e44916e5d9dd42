"""The settings of the capture daemon for one run of a program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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
        heartbeat_mode=config.heartbeat_mode,
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


def _reads_flows(program: Program, interface: InterfaceSettings) -> bool:
    """Return whether the queries read flow records on ``interface``, otherwise packets."""
    lftas = [lfta for lfta in program.lftas if interface.name in lfta.interfaces]
    flows = [lfta for lfta in lftas if lfta.reads_flows]
    if not flows:
        return False
    if interface.device is not None:
        message = (
            f"{flows[0].query} reads FLOW on the device {interface.name}: flow records are read"
            " from captures; record the exports, such as with tcpdump -w, and use gscope replay"
        )
        raise UsageError(message)
    if len(flows) < len(lftas):
        packets = next(lfta for lfta in lftas if not lfta.reads_flows)
        message = (
            f"{flows[0].query} reads FLOW and {packets.query} reads {packets.protocol} on the"
            f" interface {interface.name}, which hands out flow records or packets: give the"
            f" capture two names, as in flows={interface.files[0]} packets={interface.files[0]},"
            " and write FROM flows.FLOW"
        )
        raise UsageError(message)
    return True


def _streams(program: Program, sources: Sequence[Input]) -> tuple[str, ...]:
    lftas = dict.fromkeys(source.lfta for source in sources if isinstance(source, StreamInput))
    return tuple(stream for name in lftas for stream in program.lfta(name).streams)
