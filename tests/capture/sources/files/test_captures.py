"""Every public capture is read as scapy reads it."""

from __future__ import annotations

import gzip
import io
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from scapy import utils as scapy_utils
from tests.capture.sources.files.capture_bytes import Packet, read_file
from tests.support.requirements import CAPTURES, captures, needs

from gscope.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

# scapy's types know files by name only, and half of the metadata.
PcapReader: Any = scapy_utils.RawPcapReader
PcapNgReader: Any = scapy_utils.RawPcapNgReader

# The links of a source repository, stored as small texts.
NO_CAPTURES = {"ndpi-1kxun.pcap", "ndpi-pcap-bot.pcap", "ndpi-zoom.pcap"}
# Version 2.0, with the two lengths the other way round; scapy takes them in today's order.
SCAPY_IS_WRONG = {"ndpi-fuzz-2021-10-13.pcap"}
PATHS = captures()


def _packets_of_scapy(path: Path) -> list[Packet]:
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    if data.startswith(b"\x0a\x0d\x0d\x0a"):
        return [
            Packet(
                ((meta.tshigh << 32) | meta.tslow) * 10**9 // meta.tsresol,
                meta.wirelen,
                meta.linktype,
                packet,
            )
            for packet, meta in PcapNgReader(io.BytesIO(data))
        ]
    reader = PcapReader(io.BytesIO(data))
    unit = 1 if reader.nano else 1000
    return [
        Packet(meta.sec * 10**9 + meta.usec * unit, meta.wirelen, reader.linktype, packet)
        for packet, meta in reader
    ]


@pytest.mark.parametrize(
    "path",
    [path for path in PATHS if path.name not in NO_CAPTURES | SCAPY_IS_WRONG],
    ids=lambda path: path.name,
)
def test_is_read_as_scapy_reads_it(path: Path) -> None:
    expected = _packets_of_scapy(path)
    assert read_file(path) == expected
    assert read_file(path, block_bytes=777) == expected


@pytest.mark.parametrize("name", sorted(NO_CAPTURES))
def test_a_text_in_place_of_a_capture_is_refused(name: str) -> None:
    with pytest.raises(CaptureError, match="is not a capture"):
        read_file(CAPTURES / name)


def test_swapped_lengths_are_read_as_tshark_reads_them() -> None:
    (packet,) = read_file(CAPTURES / "ndpi-fuzz-2021-10-13.pcap")
    assert (packet.wirelen, len(packet.data)) == (524501, 197)


@needs("tcpdump")
def test_has_as_many_packets_as_tcpdump_prints() -> None:
    for path in PATHS:
        if path.name in NO_CAPTURES or path.suffix in {".gz", ".pcapng"}:
            continue
        run = subprocess.run(
            ["tcpdump", "-nr", str(path), "-w", "-"], capture_output=True, check=False
        )
        reader = PcapReader(io.BytesIO(run.stdout))
        assert sum(1 for _ in reader) == len(read_file(path)), path.name
