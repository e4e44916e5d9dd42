"""Addresses of UDP ports: what they denote, what is refused, and the settings beside them."""

from __future__ import annotations

import socket

import pytest

from gscope.capture.settings import DeviceSettings, InterfaceSettings
from gscope.capture.sources.udp.address import UdpAddress
from gscope.cli.config.capture_devices import Overrides, live_interfaces
from gscope.cli.config.yaml_file import ConfiguredInterface
from gscope.errors import UsageError


@pytest.mark.parametrize(
    ("text", "host", "port", "family"),
    [
        ("udp://0.0.0.0:2055", "0.0.0.0", 2055, socket.AF_INET),
        ("udp://192.0.2.1", "192.0.2.1", 2055, socket.AF_INET),
        ("udp://:4739", "", 4739, socket.AF_INET6),
        ("udp://", "", 2055, socket.AF_INET6),
        ("udp://[::]:2055", "::", 2055, socket.AF_INET6),
        ("udp://[fe80::1%eth0]:9995", "fe80::1%eth0", 9995, socket.AF_INET6),
        ("udp://[::ffff:192.0.2.1]:1", "::ffff:192.0.2.1", 1, socket.AF_INET6),
    ],
)
def test_an_address(text: str, host: str, port: int, family: int) -> None:
    address = UdpAddress.parse(text)
    assert (address.host, address.port, address.family) == (host, port, family)


@pytest.mark.parametrize(
    "text",
    [
        *("udp://router:2055", "udp://10.0.0:2055", "udp://::1:2055", "udp://[::1", "udp://[x]:1"),
        *("udp://10.0.0.1:", "udp://10.0.0.1:x", "udp://10.0.0.1:2055/", "udp://[10.0.0.1]:1"),
        *("10.0.0.1:2055", "UDP://10.0.0.1:2055"),
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected udp://ADDRESS:PORT, such as udp://0\.0\.0\.0"):
        UdpAddress.parse(text)


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_a_port_that_does_not_exist(port: str) -> None:
    with pytest.raises(ValueError, match=f"invalid port {port}: expected 1 to 65535"):
        UdpAddress.parse(f"udp://10.0.0.1:{port}")


def test_names_of_interfaces() -> None:
    found = live_interfaces(
        ["udp://:2055", "routers=udp://[::1]:4739", "edge"],
        (),
        Overrides(ring_bytes=8 << 20),
        {"edge": _configured("udp://10.0.0.1")},
    )
    assert [(each.name, each.device) for each in found] == [
        ("udp2055", DeviceSettings("udp://:2055", ring_bytes=8 << 20)),
        ("routers", DeviceSettings("udp://[::1]:4739", ring_bytes=8 << 20)),
        ("edge", DeviceSettings("udp://10.0.0.1", ring_bytes=8 << 20)),
    ]


def _configured(device: str) -> ConfiguredInterface:
    return ConfiguredInterface(device=DeviceSettings(device))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"filter": "udp"}, "does not support a packet filter"),
        ({"fanout": 2}, "does not support fanout"),
        ({"source": "scapy"}, "does not support scapy"),
        ({"timestamps": "hardware"}, "does not support hardware timestamps"),
    ],
)
def test_settings_that_a_port_does_not_have(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        DeviceSettings("udp://:2055", **settings)  # type: ignore[arg-type]


def test_an_invalid_address_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="invalid address udp://x: expected udp://ADDRESS:PORT"):
        InterfaceSettings("a", device=DeviceSettings("udp://x"))
