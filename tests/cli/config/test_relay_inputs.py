"""What ``--from`` and its options refuse before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.certificates import token_file

from gscope.cli.commands.input_options import requested_relay
from gscope.cli.commands.run import DeviceRequest
from gscope.cli.config.capture_devices import Overrides
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.relay_inputs import (
    DEFAULT_INTERFACE,
    InputRequest,
    ensure_relayable,
    named_interfaces,
    relay_settings,
)
from gscope.cli.config.run_limits import RunLimits
from gscope.cli.config.saving import SaveRequest
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries

LOCAL = "127.0.0.1:9470"


def config(token: str) -> Any:
    return load_config({"token_file": GivenSetting(token, "--token-file")} if token else {}, None)


def test_inputs_have_names_addresses_and_the_token(tmp_path: Path) -> None:
    token = str(token_file(tmp_path))
    request = InputRequest(("a=127.0.0.1:1", "localhost:2", "c=[::1]:3"), consumer="root")
    found = relay_settings(request, config(token))
    assert [(each.name, each.address, each.token) for each in found.inputs] == [
        ("a", "127.0.0.1:1", token),
        ("localhost:2", "localhost:2", token),
        ("c", "[::1]:3", token),
    ]
    assert (found.consumer, found.absent_after_ns) == ("root", None)


@pytest.mark.parametrize(
    ("inputs", "how", "message"),
    [
        (("nowhere",), {}, "invalid address 'nowhere'"),
        (("127.0.0.1:0",), {}, "expected the port at which it listens, got 0"),
        (("sensor1:9470",), {}, "on another host, and would be read without TLS.*--tls-ca"),
        (("a=127.0.0.1:1", "a=127.0.0.1:2"), {}, "duplicate input.*got a twice"),
        (("a=127.0.0.1:1", "b=127.0.0.1:1"), {}, "duplicate input.*got 127.0.0.1:1 twice"),
        ((LOCAL,), {"consumer": "../x"}, "invalid --as '../x'"),
        ((LOCAL,), {"absent_after_ns": 10**9}, "invalid --absent-after 1s.*failure timeout, 5s"),
        ((LOCAL,), {"certificates": Path("none")}, "cannot read the certificates"),
    ],
)
def test_wrong_inputs_are_refused(
    tmp_path: Path, inputs: tuple[str, ...], how: dict[str, Any], message: str
) -> None:
    given = config(str(token_file(tmp_path)))
    with pytest.raises(UsageError, match=message):
        relay_settings(InputRequest(inputs, **how), given)


def test_an_input_needs_a_token() -> None:
    with pytest.raises(UsageError, match="asks for a token; name its file with --token-file"):
        relay_settings(InputRequest((LOCAL,)), config(""))


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"devices": DeviceRequest(skews=("1s",))}, "--skew"),
        ({"overrides": Overrides(snaplen=100)}, "--snaplen"),
        ({"limits": RunLimits(packets=5)}, "--count"),
        ({"limits": RunLimits(duration_ns=5)}, "--duration"),
        ({"saving": SaveRequest(Path("x.pcapng"))}, "--save-packets"),
    ],
)
def test_options_of_captures_are_refused(given: dict[str, Any], option: str) -> None:
    with pytest.raises(UsageError, match=f"{option} is about capturing"):
        requested(InputRequest((LOCAL,)), **given)


@pytest.mark.parametrize(
    ("request_", "option"),
    [
        (InputRequest(certificates=Path("ca.pem")), "--tls-ca"),
        (InputRequest(consumer="root"), "--as"),
        (InputRequest(absent_after_ns=1), "--absent-after"),
    ],
)
def test_options_of_inputs_are_refused_without_one(request_: InputRequest, option: str) -> None:
    with pytest.raises(UsageError, match=f"{option} is about the inputs of --from"):
        requested(request_)
    assert requested(InputRequest()) is None


def requested(request: InputRequest, **given: Any) -> Any:
    values = {
        "devices": DeviceRequest(),
        "overrides": Overrides(),
        "limits": RunLimits(),
        "saving": None,
        **given,
    }
    return requested_relay(request, config=config(""), **values)


def test_interfaces_of_inputs_are_names() -> None:
    assert [each.name for each in named_interfaces(())] == [DEFAULT_INTERFACE]
    assert [each.name for each in named_interfaces(("in", "out"))] == ["in", "out"]
    with pytest.raises(UsageError, match="invalid interface 'in=eth0'"):
        named_interfaces(("in=eth0",))
    with pytest.raises(UsageError, match="duplicate interface"):
        named_interfaces(("in", "in"))


def test_queries_that_save_packets_are_refused() -> None:
    text = "DEFINE { save_packets 'x.pcapng'; } SELECT time, srcIP FROM TCP"
    context = CompileContext(interfaces=("in",))
    program = compile_queries([QueryText(text, "query")], context).program
    with pytest.raises(UsageError, match="packets are where they are captured"):
        ensure_relayable(program)
