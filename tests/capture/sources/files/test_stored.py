from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.files.capture_bytes import drain, expected_of, pcap_of

from gscope.capture.sources.files.file import FileSource
from gscope.capture.sources.files.stored import ReadingInterrupted, StoredBytes
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

PAYLOADS = [bytes(number % 1000) for number in range(2000)]
COUNT_STANDARD_INPUT = """
from gscope.capture.sources.files.open import open_source
source = open_source("-")
packets = 0
while (block := source.next_block()) is not None:
    packets += block.count
print(packets, source.size_bytes, source.damage)
"""


@pytest.mark.parametrize("reason", ["missing", "folder", "unreadable name"])
def test_what_cannot_be_opened_is_one_sentence(reason: str, tmp_path: Path) -> None:
    path = {"missing": str(tmp_path / "none"), "folder": str(tmp_path), "unreadable name": "a\0b"}
    with pytest.raises(CaptureError, match=r"^cannot open .+: .+$") as caught:
        FileSource(path[reason]).open()
    assert "\n" not in str(caught.value)


def test_standard_input_may_be_a_pipe() -> None:
    run = subprocess.run(
        [sys.executable, "-c", COUNT_STANDARD_INPUT],
        input=pcap_of(PAYLOADS),
        capture_output=True,
        check=True,
    )
    assert run.stdout == b"2000 None []\n"


def test_standard_input_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcap_of(PAYLOADS))
    with path.open("rb") as file:
        run = subprocess.run(
            [sys.executable, "-c", COUNT_STANDARD_INPUT],
            stdin=file,
            capture_output=True,
            check=True,
        )
    assert run.stdout == f"2000 {path.stat().st_size} []\n".encode()


def test_a_pipe_that_drips_byte_by_byte_gives_every_packet(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    data = pcap_of(PAYLOADS[:30])

    def write() -> None:
        with fifo.open("wb", buffering=0) as file:
            for value in data:
                file.write(bytes((value,)))

    writer = threading.Thread(target=write)
    writer.start()
    source = FileSource(str(fifo))
    source.open()
    assert drain(source) == expected_of(PAYLOADS[:30])
    writer.join()


def test_interrupt_wakes_a_read_that_waits(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    keeper = os.open(fifo, os.O_RDWR)
    stored = StoredBytes(str(fifo))
    outcome: list[type[BaseException]] = []

    def read() -> None:
        try:
            stored.readinto(memoryview(bytearray(10)))
        except ReadingInterrupted as error:
            outcome.append(type(error))

    reader = threading.Thread(target=read)
    reader.start()
    stored.interrupt()
    reader.join(10)
    assert outcome == [ReadingInterrupted]
    stored.close()
    stored.close()
    stored.interrupt()
    os.close(keeper)


def test_a_read_error_in_the_middle_ends_the_input_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcap_of(PAYLOADS))
    source = FileSource(str(path), name="f", block_bytes=4096)
    source.open()
    assert source.next_block() is not None
    stored = source._stored
    assert stored is not None

    class Broken:
        def readinto(self, buffer: memoryview) -> int:
            raise OSError(5, "Input/output error")

        def close(self) -> None:
            """Nothing is open."""

    stored._file.close()
    monkeypatch.setattr(stored, "_file", Broken())
    while source.next_block() is not None:
        pass
    assert source.damage[0] == (
        f"f: reading failed at byte {stored.position}: input/output error; the rest is ignored"
    )


def test_an_error_on_the_first_read_is_no_capture() -> None:
    with pytest.raises(CaptureError, match=r"cannot be read: reading failed at byte 0"):
        FileSource("/proc/self/mem").open()


def test_a_silent_pipe_is_open_as_soon_as_its_header_is_there(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    keeper = os.open(fifo, os.O_RDWR)
    os.write(keeper, pcap_of([]))
    source = FileSource(str(fifo))
    source.open()
    source.close()
    os.close(keeper)
