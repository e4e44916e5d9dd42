from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.capture.replay.open_inputs import OpenInputs
from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path


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
