"""Saved packets are those of tshark's display filter, byte for byte, and can be read again."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.capture.packet.raw_captures import SHARED, read_capture
from tests.capture.saving.pcapng_reader import read_pcapng
from tests.library.tshark import SETTINGS, TSHARK
from tests.support.gscope_command import run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.capture.packet.kernel_reader import RawPacket

CAPTURES = (
    *("ndpi-reddit.pcap", "ndpi-vnc.pcap", "ndpi-netflix.pcap", "ndpi-ssh.pcap"),
    *("ndpi-synscan.pcap", "ndpi-dnp3.pcap", "ndpi-irc.pcap", "zeek-leak_test.pcapng"),
    *("ndpi-mumble.pcapng", "ndpi-z3950.pcapng", "zeek-smtp-bdat-cmd-invalid.pcapng"),
    # Linux cooked, BSD loopback, PPP, radiotap with truncated packets, raw IP.
    *("ndpi-rtcp_multiple_pkts_in_the_same_datagram.pcap", "zeek-pubsub.pcap"),
    *("zeek-handshake.pcap", "zeek-arp-who-has-radiotap.pcap", "ndpi-iqiyi.pcap"),
)
QUERIES = {
    "https": (
        "SELECT time, srcIP FROM TCP WHERE srcPort = 443 OR destPort = 443",
        "tcp.port == 443",
    ),
    "datagrams": ("SELECT time, str_truncate(UDP_data, 4) AS head FROM UDP", "udp"),
    "openings": ("SELECT time, srcIP, seq_number FROM TCP WHERE SYN = 1", "tcp.flags.syn == 1"),
    "arp": ("SELECT time, srcMAC FROM ARP", "arp"),
}

pytestmark = pytest.mark.spark

needs_tshark = pytest.mark.skipif(TSHARK is None, reason="tshark is the oracle")


def path_of(capture: str) -> Path:
    return SHARED / "captures" / capture


def filtered_by_tshark(merged: Path, display_filter: str) -> list[RawPacket]:
    out = merged.with_name("filtered.pcapng")
    settings = [word for each in SETTINGS for word in ("-o", each)]
    assert TSHARK is not None
    command = [TSHARK, "-n", *settings, "-r", str(merged), "-Y", display_filter, "-w", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return read_capture(out)


@needs_tshark
def test_saved_packets_are_those_of_display_filters(tmp_path: Path) -> None:
    hits = tmp_path / "hits.pcapng"
    texts = [
        word
        for name, (query, _) in QUERIES.items()
        for word in ("-e", f"DEFINE {{ query_name '{name}'; }} {query}")
    ]
    inputs = [f"i{number}={path_of(capture)}" for number, capture in enumerate(CAPTURES)]
    # Small buffers and blocks, so that kernels stop for room in the middle of a batch.
    small = ["--output-rows", "1", "--block", "4K", "--heartbeat-interval", "7300ms"]
    answers = ["-w", str(tmp_path / "answers"), "--save-packets", str(hits)]
    done = run("replay", *inputs, *texts, *answers, *small)
    assert done.returncode == 0, done.stderr
    found = read_pcapng(hits.read_bytes())
    # One file for tshark, whose start takes a second: the captures one behind the other.
    merged = tmp_path / "merged.pcapng"
    sources = [path_of(capture) for capture in CAPTURES]
    subprocess.run(["mergecap", "-a", "-w", merged, *sources], check=True)
    for name, (_, display_filter) in QUERIES.items():
        saved = [
            (p.link, p.data, p.wirelen, p.time_ns)
            for number in range(len(CAPTURES))
            for p in found
            if p.interface == f"i{number}" and name in p.comments
        ]
        expected = filtered_by_tshark(merged, display_filter)
        assert saved == [(p.linktype, p.data, p.wirelen, p.time_ns) for p in expected], name
    assert {p.interface for p in found} >= {f"i{number}" for number in range(len(CAPTURES) - 2)}
    # One block for each packet, whatever the number of queries; and one row for each comment.
    comments = [p.comments for p in found]
    assert max(map(len, comments)) == 2
    assert f"  {len(found):,} packets saved in {hits}" in done.stderr
    for name in QUERIES:
        rows = len((tmp_path / "answers" / f"{name}.csv").read_text().splitlines()) - 1
        assert rows == sum(name in each for each in comments)
    check_with_others(hits, len(found))


def check_with_others(hits: Path, packets: int) -> None:
    """gscope and Wireshark's tools read the file without a complaint."""
    again = run("replay", hits, "-e", "SELECT count(*) AS packets FROM PKT", "-o", "csv")
    assert (again.returncode, again.stdout) == (0, f"packets\n{packets}\n")
    assert len(again.stderr.splitlines()) == 1, again.stderr
    capinfos = shutil.which("capinfos")
    if capinfos is not None:
        shown = subprocess.run([capinfos, hits], check=True, capture_output=True, text=True).stdout
        assert re.search(rf"Number of packets: +{packets}\b", shown)
