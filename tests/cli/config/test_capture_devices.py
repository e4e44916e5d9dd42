"""Devices on the command line and in the configuration, as interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gscope.capture.settings import LIVE_SKEW_NS, DeviceSettings
from gscope.cli.commands.config import config_lines
from gscope.cli.config.capture_devices import Overrides, live_interfaces
from gscope.cli.config.effective import load_config
from gscope.cli.config.yaml_file import ConfiguredInterface
from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

CONFIGURED = {
    "up": ConfiguredInterface(device=DeviceSettings("eth1", snaplen=96), skew_ns=10**9),
    "old": ConfiguredInterface(("old.pcap",)),
}
NOTHING = Overrides()


def test_a_device_is_an_interface_of_its_name_or_of_another() -> None:
    plain, named = live_interfaces(["lo", "up=eth0.100"], [], NOTHING, {})
    assert (plain.name, plain.device) == ("lo", DeviceSettings("lo"))
    assert (named.name, named.device) == ("up", DeviceSettings("eth0.100"))
    assert plain.skew_ns == LIVE_SKEW_NS


def test_configured_ones_are_captured_by_default_and_named_by_name() -> None:
    (default,) = live_interfaces([], [], NOTHING, CONFIGURED)
    chosen, other = live_interfaces(["up", "lo"], [], NOTHING, CONFIGURED)
    assert chosen == default
    assert (default.name, default.device, default.skew_ns) == (
        "up",
        DeviceSettings("eth1", snaplen=96),
        10**9,
    )
    assert other.skew_ns == LIVE_SKEW_NS


def test_flags_count_more_than_the_configuration() -> None:
    overrides = Overrides(snaplen=64, is_promiscuous=False, filter="tcp")
    (interface,) = live_interfaces(["up"], ["300ms"], overrides, CONFIGURED)
    assert interface.device == DeviceSettings("eth1", 64, is_promiscuous=False, filter="tcp")
    assert interface.skew_ns == 300_000_000


@pytest.mark.parametrize(
    ("given", "skews", "complaint"),
    [
        ([], [], "name one with -i; available: .*lo"),
        (["lo", "lo"], [], "duplicate interface"),
        (["lo"], ["1ms"], "invalid skew of the live interface lo: expected at least 50ms"),
        (["lo"], ["eth=1s"], "unknown interface 'eth'"),
    ],
)
def test_a_mistake_is_a_sentence(given: list[str], skews: list[str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        live_interfaces(given, skews, NOTHING, {})


EXAMPLE = """
interfaces:
  up: {device: eth0, snaplen: 128, ring: 16M, promiscuous: no, filter: udp port 53}
  down: {device: eth1, skew: 100ms}
"""


def test_the_configuration_names_devices(tmp_path: Path) -> None:
    path = tmp_path / "gscope.yaml"
    path.write_text(EXAMPLE)
    config = load_config({}, path)
    assert config.interfaces["up"].device == DeviceSettings(
        "eth0", 128, 16 << 20, is_promiscuous=False, filter="udp port 53"
    )
    assert config.interfaces["up"].effective_skew_ns == LIVE_SKEW_NS
    assert config.interfaces["down"].effective_skew_ns == 100_000_000
    shown = "\n".join(config_lines(config))
    assert yaml.safe_load(shown)["interfaces"]["up"]["ring"] == "16M"
    path.write_text(shown)
    assert load_config({}, path).interfaces == config.interfaces


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("{snaplen: 64}", "such as `device: eth0`"),
        ("{device: eth0, file: a.pcap}", "device and files are mutually exclusive"),
        ("{device: eth0, ring: much}", "invalid size 'much'"),
    ],
)
def test_a_wrong_entry_is_reported_with_its_line(
    tmp_path: Path, entry: str, complaint: str
) -> None:
    path = tmp_path / "gscope.yaml"
    path.write_text(f"interfaces:\n  up: {entry}\n")
    with pytest.raises(UsageError, match=f"yaml:2: .*{complaint}"):
        load_config({}, path)


def test_how_a_device_is_captured_can_be_configured_and_overridden(tmp_path: Path) -> None:
    file = tmp_path / "gscope.yaml"
    file.write_text(
        "interfaces: {up: {device: eth1, fanout: 2, source: af_packet, timestamps: hardware,"
        " kernel_filter: off}}"
    )
    configured = load_config({}, file).interfaces
    expected = DeviceSettings(
        "eth1", fanout=2, source="af_packet", timestamps="hardware", has_kernel_filter=False
    )
    assert configured["up"].device == expected
    overrides = Overrides(fanout=1, source="scapy", timestamps="kernel")
    (interface,) = live_interfaces(["up"], [], overrides, configured)
    assert interface.device == DeviceSettings("eth1", source="scapy", has_kernel_filter=False)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (
            "source: pcap",
            r"gscope.yaml:1: invalid value 'pcap': expected one of auto, af_packet, scapy",
        ),
        ("timestamps: gps", r"invalid value 'gps': expected one of kernel, hardware"),
        ("fanout: 1000", r"eth1: invalid fanout 1000: expected 1 to 64"),
        ("fanout: 2, source: scapy", r"scapy supports neither"),
    ],
)
def test_a_device_that_cannot_be_so_is_refused(tmp_path: Path, entry: str, complaint: str) -> None:
    file = tmp_path / "gscope.yaml"
    file.write_text(f"interfaces: {{up: {{device: eth1, {entry}}}}}")
    with pytest.raises(UsageError, match=complaint):
        load_config({}, file)
