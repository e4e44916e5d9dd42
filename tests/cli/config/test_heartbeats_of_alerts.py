"""Heartbeats of runs with alerts: the clock alone sends some, unless the user wants none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gscope.capture.settings import DeviceSettings, InterfaceSettings
from gscope.cli.config.capture_settings import capture_settings
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.run_limits import RunLimits
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.gsql.alerts.parser import parse_alert

PROGRAM = compile_queries(
    [QueryText("SELECT tb, count(*) AS n FROM TCP GROUP BY time AS tb", "q")],
    CompileContext(("eth0",)),
).program


@pytest.mark.parametrize(
    ("mode", "chosen"),
    [("periodic", "periodic"), ("on-demand", "both"), ("both", "both"), ("off", "off")],
)
def test_no_operator_demands_the_heartbeat_that_ends_an_alert(mode: str, chosen: str) -> None:
    interfaces = (InterfaceSettings("eth0", device=DeviceSettings("eth0")),)

    config = load_config({"heartbeat.mode": GivenSetting(mode, "--heartbeat-mode")}, None)
    alert = parse_alert("query: raise n > 5")
    found = [
        str(capture_settings(PROGRAM, interfaces, each, RunLimits()).heartbeat_mode)
        for each in (config, replace(config, alerts=(alert,)))
    ]
    assert found == [mode, chosen]
