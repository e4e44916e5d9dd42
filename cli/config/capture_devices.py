"""Interfaces of a live run, from the command line and the configuration file."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gscope.capture.settings import (
    LIVE_SKEW_NS,
    MIN_LIVE_SKEW_NS,
    DeviceSettings,
    InterfaceSettings,
)
from gscope.capture.sources.udp.address import UdpAddress
from gscope.cli.config.capture_files import given_skews
from gscope.cli.config.quantities import show_duration
from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.cli.config.yaml_file import ConfiguredInterface

_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings that flags give for all devices, over those of the configuration file.

    None leaves a setting as it is configured. Units and meanings are those of ``DeviceSettings``.

    Attributes:
        snaplen: the length in bytes to which packets are truncated.
        ring_bytes: the size of the capture ring.
        is_promiscuous: whether the device is put into promiscuous mode.
        filter: an expression of pcap-filter(7).
        fanout: the number of threads of an interface.
        source: a name of ``SOURCES``.
        timestamps: a name of ``TIMESTAMPS``.
        has_kernel_filter: whether a kernel filter is derived from the queries.
    """

    snaplen: int | None = None
    ring_bytes: int | None = None
    is_promiscuous: bool | None = None
    filter: str | None = None
    fanout: int | None = None
    source: str | None = None
    timestamps: str | None = None
    has_kernel_filter: bool | None = None

    def over(self, device: DeviceSettings) -> DeviceSettings:
        """Return ``device`` with the settings that are given."""
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return replace(device, **{name: v for name, v in values.items() if v is not None})


def live_interfaces(
    given: Sequence[str],
    skews: Sequence[str],
    overrides: Overrides,
    configured: Mapping[str, ConfiguredInterface],
) -> tuple[InterfaceSettings, ...]:
    """Return the interfaces of a live run.

    Args:
        given: ``DEVICE``, ``NAME=DEVICE`` or the name of a configured interface; () for all
            configured interfaces with a device. The name of a UDP port is ``udp`` and its number.
        skews: ``DURATION`` for all or ``NAME=DURATION``.
        overrides: the settings for all devices.
        configured: the interfaces of the configuration file.

    Raises:
        UsageError: there is no interface, one is named twice, or a duration is invalid.
    """
    live = {name: each.device for name, each in configured.items() if each.device is not None}
    devices = dict(_device(text, live) for text in given) if given else live
    if len(devices) < len(given):
        message = f"duplicate interface: expected each once, got {', '.join(given)}"
        raise UsageError(message)
    if not devices:
        there = ", ".join(name for _, name in socket.if_nameindex())
        message = f"no interface to capture on: name one with -i; available: {there}"
        raise UsageError(message)
    skew_ns = dict.fromkeys(devices, LIVE_SKEW_NS) | given_skews(skews, devices, configured)
    for name, skew in skew_ns.items():
        if skew < MIN_LIVE_SKEW_NS:
            message = (
                f"invalid skew of the live interface {name}: expected at least"
                f" {show_duration(MIN_LIVE_SKEW_NS)}, as long as the kernel may hold packets back,"
                f" got {show_duration(skew)}"
            )
            raise UsageError(message)
    return tuple(
        InterfaceSettings(
            name,
            skew_ns=skew_ns[name],
            device=overrides.over(device),
            is_latent=name in configured and configured[name].is_latent,
        )
        for name, device in devices.items()
    )


def interface_name(text: str) -> str:
    """Return the name of the interface that ``-i`` of a live run makes of ``text``.

    Raises:
        UsageError: it denotes a UDP port, and is invalid.
    """
    name, _ = _device(text, {})
    return name


def _device(text: str, configured: Mapping[str, DeviceSettings]) -> tuple[str, DeviceSettings]:
    if text in configured:
        return text, configured[text]
    match = _NAMED.fullmatch(text)
    if match is not None:
        name, device = match.groups()
        return name, DeviceSettings(device)
    device = DeviceSettings(text)
    return UdpAddress.parse(text).interface if device.is_udp else text, device
