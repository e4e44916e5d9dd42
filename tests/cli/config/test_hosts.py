"""Hosts from the command line and from the configuration file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.certificates import make_certificate, token_file
from tests.support.requirements import needs

from gscope.capture.log.remote.address import TcpAddress
from gscope.capture.settings import RelayInput
from gscope.cli.config.effective import Config, GivenSetting, load_config
from gscope.cli.config.hosts import host_inputs, hosts_by_default
from gscope.cli.config.relay_inputs import InputRequest
from gscope.cli.config.yaml_file import ConfiguredHost
from gscope.cli.session.hosts import HostInterfaces, HostsOfRun, read_hosts
from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def config_of(folder: Path, text: str = "") -> Config:
    path = folder / "gscope.yaml"
    path.write_text(text)
    token = GivenSetting(str(token_file(folder)), "--token-file")
    return load_config({"token_file": token}, path)


def test_a_host_is_named_with_its_address(tmp_path: Path) -> None:
    settings = host_inputs(InputRequest(hosts=("a=127.0.0.1:9480",)), config_of(tmp_path))
    token = str(tmp_path / "token")
    assert settings.inputs == (RelayInput("a", "127.0.0.1:9480", token),)


@needs("openssl")
def test_the_file_has_hosts_with_tokens_and_certificates_of_their_own(tmp_path: Path) -> None:
    made = make_certificate(tmp_path, "b")
    other = tmp_path / "other"
    other.write_text("0" * 32)
    other.chmod(0o600)
    config = config_of(
        tmp_path,
        f"""hosts:
  a:
    address: 127.0.0.1:9480
  b:
    address: sensor2:9480
    token_file: {other}
    tls_ca: {made.certificate}
""",
    )
    assert config.hosts["a"] == ConfiguredHost(TcpAddress("127.0.0.1", 9480))
    settings = host_inputs(InputRequest(), config)
    assert settings.inputs == (
        RelayInput("a", "127.0.0.1:9480", str(tmp_path / "token")),
        RelayInput("b", "sensor2:9480", str(other), str(made.certificate)),
    )
    (chosen,) = host_inputs(InputRequest(hosts=("b",)), config).inputs
    assert chosen.name == "b"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hosts: {a: {token_file: x}}", "gscope.yaml:1: host a lacks an address"),
        ("hosts: {a: {address: x}}", "invalid address 'x'"),
        ("hosts: {a: {addres: x}}", "unknown key 'addres'"),
        ("hosts: {a.b: {address: 'x:1'}}", "invalid host 'a.b'"),
    ],
)
def test_a_wrong_entry_names_its_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError) as raised:
        config_of(tmp_path, text)
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (InputRequest(hosts=("a",)), "unknown host 'a'; expected NAME=HOST:PORT"),
        (InputRequest(hosts=("a.b=127.0.0.1:1",)), "invalid host 'a.b'"),
        (InputRequest(hosts=("a=127.0.0.1",)), "invalid address"),
        (InputRequest(hosts=("a=127.0.0.1:0",)), "expected the port of its agent"),
        (InputRequest(hosts=("a=10.0.0.1:9480",)), "would be read without TLS"),
        (InputRequest(hosts=("a=127.0.0.1:1", "a=127.0.0.1:2")), "got a twice"),
        (InputRequest(hosts=("a=127.0.0.1:1",), inputs=("127.0.0.1:2",)), "--from is about logs"),
        (InputRequest(hosts=("a=127.0.0.1:1",), consumer="x"), "--as is about logs"),
        (
            InputRequest(hosts=("a=127.0.0.1:1",), absent_after_ns=1),
            "expected at least the failure timeout",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, request_: InputRequest, reason: str
) -> None:
    with pytest.raises(UsageError) as raised:
        host_inputs(request_, config_of(tmp_path))
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("text", "request_", "devices", "is_default"),
    [
        ("", InputRequest(), (), False),
        ("hosts: {a: {address: 'a:1'}}", InputRequest(), (), True),
        ("hosts: {a: {address: 'a:1'}}", InputRequest(), ("eth0",), False),
        ("hosts: {a: {address: 'a:1'}}", InputRequest(inputs=("b:1",)), (), False),
        (
            "hosts: {a: {address: 'a:1'}}\ninterfaces: {up: {device: eth0}}",
            InputRequest(),
            (),
            False,
        ),
    ],
)
def test_the_hosts_of_the_file_are_read_if_nothing_else_is_named(
    tmp_path: Path,
    text: str,
    request_: InputRequest,
    devices: tuple[str, ...],
    is_default: bool,
) -> None:
    assert hosts_by_default(request_, devices, config_of(tmp_path, text)) == is_default


OFFERS = HostsOfRun((HostInterfaces("a", ("up", "down")), HostInterfaces("b", ("up",))))


@pytest.mark.parametrize(
    ("chosen", "interfaces"),
    [
        ((), ("a.up", "a.down", "b.up")),
        (("up",), ("a.up", "b.up")),
        (("a.up",), ("a.up",)),
        (("down", "b.up"), ("a.down", "b.up")),
    ],
)
def test_interfaces_are_chosen_with_and_without_their_host(
    chosen: tuple[str, ...], interfaces: tuple[str, ...]
) -> None:
    assert OFFERS.limited(chosen).interfaces == interfaces


@pytest.mark.parametrize("name", ["b.down", "eth0", "a"])
def test_an_interface_that_no_host_offers_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"available: a\.up, a\.down, b\.up"):
        OFFERS.limited((name,))


def test_a_run_keeps_its_hosts_and_the_name_of_its_captures(tmp_path: Path) -> None:
    folder = tmp_path / "run-flows"
    folder.mkdir()
    assert read_hosts(folder) is None
    stored = OFFERS.store(folder)
    assert stored.capture.startswith("flows-")
    assert OFFERS.store(folder) == stored == read_hosts(folder)
    with pytest.raises(UsageError, match="was started with the hosts a, b"):
        OFFERS.limited(("a.up",)).store(folder)
