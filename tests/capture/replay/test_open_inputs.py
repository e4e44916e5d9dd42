from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.nfcapd.flow_files import addresses, flow_file, generic, record
from tests.support.gscope_command import PATIENCE_S

from gscope.capture.replay.open_inputs import OpenInputs
from gscope.capture.replay.replay_stop import ReplayStop
from gscope.capture.settings import CaptureSettings, FilterProgram, InterfaceSettings
from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.sources.base import CaptureSource


def settings(*files: Path) -> CaptureSettings:
    return CaptureSettings(tuple(InterfaceSettings(file.stem, (str(file),)) for file in files))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "good.pcap"
    write_pcap(TrafficProfile(), path, 10)
    return path


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.pcap"
    path.write_text("../elsewhere/text.pcap")
    return path


def test_a_file_that_is_no_capture_is_an_interface_without_packets(
    capture: Path, text: Path
) -> None:
    with OpenInputs(settings(text, capture)) as inputs:
        assert inputs["text"].next_block() is None
        assert inputs["good"].next_block() is not None
        assert list(inputs.refused) == ["text"]
        assert "not a capture" in inputs.refused["text"]


def test_a_file_that_is_no_capture_alone_is_an_error(text: Path) -> None:
    with pytest.raises(CaptureError, match="not a capture"):
        OpenInputs(settings(text))


def test_a_missing_file_stops_everything_before_it_begins(capture: Path, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"cannot open .*missing\.pcap"):
        OpenInputs(settings(capture, tmp_path / "missing.pcap"))


def test_a_stop_ends_the_pass_that_counts_the_packets_of_several_interfaces(
    capture: Path, tmp_path: Path
) -> None:
    """The pass waits in a named pipe behind the capture: only a stop ends it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    interfaces = (
        InterfaceSettings("a", (str(capture), str(pipe))),
        InterfaceSettings("b", (str(capture),)),
    )
    stop = ReplayStop()
    is_over, was_stopped = threading.Event(), threading.Event()

    def stop_in_the_pass() -> None:
        # Opening waits for the reader; closing the pipe would end the pass as well.
        with pipe.open("wb"):
            stop.request()
            if is_over.wait(PATIENCE_S):
                was_stopped.set()

    thread = threading.Thread(target=stop_in_the_pass)
    thread.start()
    with OpenInputs(CaptureSettings(interfaces, packets=1_000), stop) as inputs:
        is_over.set()
        thread.join()
        assert was_stopped.is_set()
        assert [_packets(inputs[name]) for name in inputs] == [10, 10]


def test_a_stop_before_the_pass_leaves_no_packets(capture: Path) -> None:
    interfaces = tuple(InterfaceSettings(name, (str(capture),)) for name in "ab")
    stop = ReplayStop()
    stop.request()
    with OpenInputs(CaptureSettings(interfaces, packets=5), stop) as inputs:
        assert [_packets(inputs[name]) for name in inputs] == [0, 0]
    with OpenInputs(CaptureSettings(interfaces, packets=5), ReplayStop()) as inputs:
        assert [_packets(inputs[name]) for name in inputs] == [3, 2]


def _packets(source: CaptureSource) -> int:
    count = 0
    while (block := source.next_block()) is not None:
        count += block.count
    return count


def flow_settings(
    file: Path, capture: Path, *, reads_flows: bool, most: int | None = None
) -> CaptureSettings:
    filters = () if reads_flows else (FilterProgram(1, ()),)
    return CaptureSettings(
        (
            InterfaceSettings("flows", (str(file),), reads_flows=reads_flows, finds_skew=True),
            InterfaceSettings("packets", (str(capture),), filters=filters),
        ),
        packets=most,
    )


@pytest.fixture
def flow_records(tmp_path: Path) -> Path:
    path = tmp_path / "nfcapd.202611241445"
    at_ms = (1_700_000_039_000, 1_700_000_004_000)
    v4 = addresses("10.0.0.1", "10.0.0.2")
    path.write_bytes(flow_file([record(generic(received_ms=ms), v4) for ms in at_ms]))
    return path


def test_a_file_of_nfcapd_is_refused_where_queries_read_packets(
    flow_records: Path, capture: Path
) -> None:
    with OpenInputs(flow_settings(flow_records, capture, reads_flows=False)) as inputs:
        assert inputs["flows"].next_block() is None
        assert inputs.refused["flows"].endswith(
            "is a file of nfcapd, whose flow records are read by queries FROM FLOW only"
        )


def test_a_file_of_nfcapd_is_refused_with_a_packet_filter(flow_records: Path) -> None:
    one = InterfaceSettings(
        "flows", (str(flow_records),), reads_flows=True, filters=(FilterProgram(1, ()),)
    )
    with pytest.raises(
        CaptureError, match=r"has no packets for the packet filter \(-f\) to select"
    ):
        OpenInputs(CaptureSettings((one,)))


def test_a_file_of_nfcapd_beside_a_capture(flow_records: Path, capture: Path) -> None:
    settings = flow_settings(flow_records, capture, reads_flows=True)
    with OpenInputs(settings) as inputs:
        block = inputs["flows"].next_block()
        assert block is not None
        assert block.count == 1
        assert inputs.skew_ns(settings.interfaces[0]) == 35 * 10**9
        assert inputs["packets"].next_block() is not None
