"""The packets that are saved for a row are those that a loop over the capture selects."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from scapy.layers.inet import IP, UDP
from tests.capture.saving.pcapng_reader import read_pcapng
from tests.library.traffic import ANN, BASE, BOB, WEB, frame, write

from gscope.capture.settings import InterfaceSettings
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.run_limits import RunLimits
from gscope.cli.render.progress import NullProgress
from gscope.cli.session.request import QueryRequest
from gscope.cli.session.row_packets import RowPackets
from gscope.cli.session.session import Session
from gscope.cli.supervision.supervisor import Supervisor
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

    from tests.library.traffic import Sent

    from gscope.cli.render.progress import RunObserver
    from gscope.cli.rundir.record_file import RunFile

GROUPS = """DEFINE { query_name groups; } SELECT tb, srcIP, count(*) AS packets FROM UDP
WHERE destPort > 50 GROUP BY time/10 AS tb, srcIP HAVING count(*) > 0"""
PACKETS = "DEFINE { query_name packets; } SELECT time, srcIP FROM UDP"


def sent() -> list[Sent]:
    return [
        (
            1 + number * 0.7,
            frame(IP(src=(ANN, BOB)[number % 2], dst=WEB) / UDP(sport=number, dport=40 + number)),
        )
        for number in range(60)
    ]


@pytest.fixture
def packets(tmp_path: Path) -> RowPackets:
    trace = write(tmp_path / "trace.pcap", sent())
    config = load_config({"work_dir": GivenSetting(str(tmp_path / "work"), "--work-dir")}, None)
    interfaces = (InterfaceSettings("trace", (str(trace),)),)
    program = compile_queries(
        [QueryText(f"{GROUPS}; {PACKETS}", "query")], CompileContext(("trace",))
    ).program
    session = Session(QueryRequest(), interfaces, RunLimits(), None, None, config)

    def start(file: RunFile, quiet: RunObserver | None) -> Supervisor:
        confinement = session.prepared(file.record.path)
        shown = quiet or NullProgress()
        return Supervisor(file, shown, time.monotonic(), confinement=confinement)

    return RowPackets(session, program, "run", start)


def row(at: float, source: str) -> pa.Table:
    address = bytes(10) + b"\xff\xff" + bytes(int(part) for part in source.split("."))
    tb = (BASE + int(at)) // 10
    return pa.table({"tb": [tb], "srcIP": [address], "packets": [1]})


def test_the_packets_of_one_group_are_saved(packets: RowPackets, tmp_path: Path) -> None:
    path = tmp_path / "row.pcapng"
    said = packets.save("groups", row(20, BOB), path)
    tb = (BASE + 20) // 10
    expected = [
        bytes(packet)
        for at, packet in sent()
        if (BASE + int(at)) // 10 == tb and packet[IP].src == BOB and packet[UDP].dport > 50
    ]
    assert len(expected) == 7
    assert said == f"{len(expected)} packets of the row saved in {path}"
    assert [each.data for each in read_pcapng(path.read_bytes())] == expected
    assert not list((tmp_path / "work").glob("run-*"))


def test_what_cannot_be_saved_is_said(packets: RowPackets, tmp_path: Path) -> None:
    path = tmp_path / "row.pcapng"
    assert "are packets, and not groups" in packets.save("packets", row(20, BOB), path)
    assert not path.exists()
    path.write_text("kept")
    assert "the file exists" in packets.save("groups", row(20, BOB), path)
    assert path.read_text() == "kept"
