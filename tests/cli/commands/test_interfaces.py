from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

from gscope.capture.sources.af_packet.interfaces import Interface
from gscope.capture.sources.af_packet.link_type import COOKED, link_type_of
from gscope.cli.main import run

if TYPE_CHECKING:
    import pytest

FOUND = [
    Interface("eth0", "up", link_type_of(1), "02:00:00:00:00:01", ("192.0.2.1/24", "::1/64"), "no"),
    Interface("any", "up", COOKED, "", (), "no"),
]


def test_the_machine_s_interfaces_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["interfaces"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["INTERFACE", *(name for _, name in socket.if_nameindex()), "any"]


def test_the_table_is_aligned_and_the_reason_reported_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gscope.capture.sources.af_packet.interfaces.list_interfaces", lambda: FOUND
    )
    assert run(["interfaces"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "INTERFACE  STATE  LINK TYPE  ADDRESSES",
        "eth0       up     EN10MB     192.0.2.1/24, ::1/64",
        "any        up     LINUX_SLL",
    ]
    assert captured.err == "gscope: no\n"


def test_json_has_every_fact(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gscope.capture.sources.af_packet.interfaces.list_interfaces", lambda: FOUND
    )
    assert run(["interfaces", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0] == {
        "name": "eth0",
        "state": "up",
        "link_type": "EN10MB",
        "linktype": 1,
        "hardware_address": "02:00:00:00:00:01",
        "addresses": ["192.0.2.1/24", "::1/64"],
        "can_capture": False,
        "why_not": "no",
    }
