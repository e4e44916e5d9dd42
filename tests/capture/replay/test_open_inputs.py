from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import PATIENCE_S

from gscope.capture.replay.open_inputs import OpenInputs
from gscope.capture.replay.replay_stop import ReplayStop
from gscope.capture.settings import CaptureSettings, InterfaceSettings
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
