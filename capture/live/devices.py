"""The devices of a live capture: opened before privileges are dropped, closed together."""

from __future__ import annotations

import socket
from dataclasses import field
from typing import TYPE_CHECKING, Self

from gscope.capture.live.clock import LiveClock
from gscope.capture.sources.af_packet.fanout_rings import FanoutSource
from gscope.capture.sources.af_packet.packet_socket import Fanout
from gscope.capture.sources.af_packet.source import AfPacketSource
from gscope.capture.sources.udp.address import is_udp
from gscope.errors import CaptureError, NoDeviceError
from gscope.queries.plan.split.kernel_filter import needed_packets
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
    from gscope.capture.sources.base import LiveSource
    from gscope.queries.plan.program import Program


@dataclass(frozen=True, slots=True)
class Start:
    """The moment since which a source lets packets in.

    Attributes:
        real_ns: by the clock that stamps packets.
        monotonic_ns: by a clock that is never stepped.
    """

    real_ns: int
    monotonic_ns: int

    @classmethod
    def of(cls, clock: LiveClock) -> Start:
        """Return the present by a clock."""
        return cls(clock.real_ns(), clock.monotonic_ns())


@dataclass(frozen=True, slots=True)
class LiveInputs:
    """The packet sources of a live capture; their owner closes them.

    Attributes:
        sources: open source of each interface that this daemon captures, by name.
        missing: for interfaces without a source whose streams have not ended, by name, the reason.
        make_clock: returns a clock for one interface: the clock that stamps its packets.
        starts: when packets were let in, by interface; empty before ``start``.
    """

    sources: Mapping[str, LiveSource | FanoutSource]
    missing: Mapping[str, str] = field(default_factory=dict)
    make_clock: Callable[[], LiveClock] = LiveClock
    starts: dict[str, Start] = field(default_factory=dict)

    def start(self, program: Program, settings: CaptureSettings) -> None:
        """Let packets in that the program needs, unless that has been done.

        They wait in the rings until they are read, so that none is missed while kernels are
        compiled.
        """
        if self.starts:
            return
        for interface in settings.interfaces:
            source = self.sources.get(interface.name)
            if source is None:
                continue
            if interface.device is not None and interface.device.has_kernel_filter:
                source.narrow(needed_packets(program.lftas, interface.name))
            if isinstance(source, FanoutSource) and program.partitioning is not None:
                source.divide(program.partitioning.members)
            source.start()
            self.starts[interface.name] = Start.of(self.make_clock())

    def prepare(self) -> None:
        """Get ready to read; a source with more packets than room meanwhile starts again."""
        for name, source in self.sources.items():
            if source.prepare():
                self.starts[name] = Start.of(self.make_clock())


class Devices:
    """The open source of each interface; a context manager.

    Packets are let in when their sources are started, which needs no privilege.

    Args:
        settings: settings of the capture.
        ended: names of interfaces that are not captured again.

    Attributes:
        missing: for interfaces whose devices are missing, by name, the reason; see
            ``CaptureSettings.allow_missing_devices``.

    Raises:
        CaptureError: devices cannot be opened, or all are missing. The message has one line for
            each device. No device is left open.
        UsageError: a filter or a size is invalid.
    """

    def __init__(self, settings: CaptureSettings, ended: Collection[str] = ()) -> None:
        self._sources: dict[str, LiveSource | FanoutSource] = {}
        self.missing: dict[str, str] = {}
        problems: list[str] = []
        try:
            for interface in settings.interfaces:
                if interface.name in ended:
                    continue
                assert interface.device is not None
                try:
                    source = _opened(interface.name, interface.device)
                    self._sources[interface.name] = _read(source, interface)
                except NoDeviceError as error:
                    self.missing[interface.name] = _vanished(interface.device)
                    problems += () if settings.allow_missing_devices else (str(error),)
                except CaptureError as error:
                    problems.append(str(error))
            if self.missing and not self._sources:
                problems = problems or list(self.missing.values())
            if problems:
                raise CaptureError("\n".join(dict.fromkeys(problems)))
        except BaseException:
            self.close()
            raise

    @property
    def sources(self) -> dict[str, LiveSource | FanoutSource]:
        """The open source of each interface, by name."""
        return dict(self._sources)

    @property
    def inputs(self) -> LiveInputs:
        """The sources, and the devices that are missing, for a live capture."""
        return LiveInputs(self.sources, self.missing)

    def close(self) -> None:
        """Close all sources; may be called twice."""
        for source in self._sources.values():
            source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def is_by_scapy(device: DeviceSettings) -> bool:
    """Return whether scapy captures the device: by its settings, or for lack of AF_PACKET."""
    return device.source == "scapy" or (device.source == "auto" and not has_packet_sockets())


def has_packet_sockets() -> bool:
    """Return whether this system has AF_PACKET, with or without the permission to use it."""
    return hasattr(socket, "AF_PACKET")


def _vanished(device: DeviceSettings) -> str:
    """Return the reason why a device that an earlier daemon captured is not captured now."""
    return f"{device.device} was missing when the capture daemon was restarted"


def _read(
    source: LiveSource | FanoutSource, interface: InterfaceSettings
) -> LiveSource | FanoutSource:
    """Return what queries read of ``source``: its packets, or their flow records."""
    if not interface.reads_flows:
        return source
    assert not isinstance(source, FanoutSource), "the configuration refuses flows in lanes"
    from gscope.capture.sources.flows.live_source import LiveFlowSource

    return LiveFlowSource(source)


def _opened(name: str, device: DeviceSettings) -> LiveSource | FanoutSource:
    if is_udp(device.device):
        from gscope.capture.sources.udp.source import UdpSource

        port = UdpSource(name, device.device, buffer_bytes=device.ring_bytes)
        port.open()
        return port
    if is_by_scapy(device):
        return _opened_by_scapy(name, device)
    if not has_packet_sockets():
        message = (
            f"{device.device}: this system does not support AF_PACKET; set `source: scapy` or auto"
        )
        raise CaptureError(message)
    if device.fanout == 1:
        ring = _ring(name, device, None)
        ring.open()
        return ring
    source = FanoutSource(name, [_ring(name, device, Fanout()) for _ in range(device.fanout)])
    source.open()
    return source


def _ring(name: str, device: DeviceSettings, fanout: Fanout | None) -> AfPacketSource:
    return AfPacketSource(
        name,
        device.device,
        snaplen=device.snaplen,
        ring_bytes=device.ring_bytes,
        promiscuous=device.is_promiscuous,
        filter=device.filter,
        fanout=fanout,
        hardware_time=device.timestamps == "hardware",
    )


def _opened_by_scapy(name: str, device: DeviceSettings) -> LiveSource:
    from gscope.capture.sources.scapy_source import ScapySource

    if device.fanout > 1 or device.timestamps != "kernel":
        message = f"{device.device}: scapy supports neither fanout nor hardware timestamps"
        raise CaptureError(message)
    source = ScapySource(
        name,
        device.device,
        snaplen=device.snaplen,
        buffer_bytes=device.ring_bytes,
        promiscuous=device.is_promiscuous,
        filter=device.filter,
    )
    source.open()
    return source
