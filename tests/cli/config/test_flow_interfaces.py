"""Which interfaces hand out flow records: those of which queries read ``FLOW``."""

from __future__ import annotations

import pytest

from gscope.capture.settings import DeviceSettings, InterfaceSettings
from gscope.cli.config.capture_settings import capture_settings
from gscope.cli.config.effective import load_config
from gscope.cli.config.run_limits import RunLimits
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries

FILES = (InterfaceSettings("a", ("a.pcap",)), InterfaceSettings("b", ("b.pcap",)))


def reads_flows(*queries: str, interfaces: tuple[InterfaceSettings, ...] = FILES) -> list[str]:
    texts = [QueryText(query, f"q{number}") for number, query in enumerate(queries)]
    names = tuple(each.name for each in interfaces)
    program = compile_queries(texts, CompileContext(names, {}, {})).program
    settings = capture_settings(program, interfaces, load_config({}, None), RunLimits())
    return [each.name for each in settings.interfaces if each.reads_flows]


def test_interfaces_of_which_queries_read_flow() -> None:
    flows = "SELECT count(*) FROM {}FLOW GROUP BY time/60"
    packets = "SELECT count(*) FROM {}TCP GROUP BY time/60"
    assert reads_flows(flows.format("")) == ["a", "b"]
    assert reads_flows(flows.format("a."), packets.format("b.")) == ["a"]
    assert reads_flows(packets.format("")) == []
    own = "PROTOCOL Web (FLOW) WHERE destPort = 80 {{}} DEFINE {{ query_name 'w'; }} {}"
    assert reads_flows(own.format("SELECT time FROM b.Web")) == ["b"]


def test_both_on_one_interface_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"flows=b\.pcap packets=b\.pcap, and write FROM flows\.FLOW"
    ):
        reads_flows("SELECT time FROM b.FLOW", "SELECT time FROM TCP")


def on(device: str, name: str = "eth0", fanout: int = 1) -> tuple[InterfaceSettings, ...]:
    return (InterfaceSettings(name, device=DeviceSettings(device, fanout=fanout)),)


def test_devices_hand_out_records_too() -> None:
    assert reads_flows("SELECT time FROM FLOW", interfaces=on("eth0")) == ["eth0"]
    assert reads_flows("SELECT time FROM TCP", interfaces=on("eth0")) == []
    with pytest.raises(UsageError, match="give the device two names, as in -i flows=eth0 -i pack"):
        reads_flows("SELECT time FROM FLOW", "SELECT time FROM TCP", interfaces=on("eth0"))


def test_threads_do_not_share_what_exporters_say() -> None:
    with pytest.raises(UsageError, match="reads FLOW on eth0: fanout 2 would divide"):
        reads_flows("SELECT time FROM FLOW", interfaces=on("eth0", fanout=2))


def test_a_port_hands_out_nothing_else() -> None:
    port = on("udp://:2055", "udp2055")
    assert reads_flows("SELECT time FROM FLOW", interfaces=port) == ["udp2055"]
    with pytest.raises(
        UsageError, match=r"q0 reads TCP on the interface udp2055, but udp://:2055 receives flow"
    ):
        reads_flows("SELECT time FROM TCP", interfaces=port)
