"""Which interfaces of a replay hand out flow records: those of which queries read ``FLOW``."""

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


def test_devices_are_refused() -> None:
    device = InterfaceSettings("eth0", device=DeviceSettings("eth0"))
    with pytest.raises(UsageError, match="reads FLOW on the device eth0"):
        reads_flows("SELECT time FROM FLOW", interfaces=(device,))
