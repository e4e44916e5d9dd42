"""Saved packets are those of tshark's display filter, byte for byte, and can be read again."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.packet.raw_captures import read_capture
from tests.capture.saving.pcapng_reader import read_pcapng
from tests.library.tshark import SETTINGS, Packet, read
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.capture.packet.kernel_reader import RawPacket

SAMPLE = (
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


def path_of(capture: str) -> Path:
    return CAPTURES / capture


def filtered_by_tshark(merged: Path, display_filter: str) -> list[RawPacket]:
    out = merged.with_name("filtered.pcapng")
    settings = [word for each in SETTINGS for word in ("-o", each)]
    command = ["tshark", "-n", *settings, "-r", str(merged), "-Y", display_filter, "-w", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return read_capture(out)


@needs("tshark", "capinfos")
def test_saved_packets_are_those_of_display_filters(tmp_path: Path) -> None:
    hits = tmp_path / "hits.pcapng"
    texts = [
        word
        for name, (query, _) in QUERIES.items()
        for word in ("-e", f"DEFINE {{ query_name '{name}'; }} {query}")
    ]
    inputs = [f"i{number}={path_of(capture)}" for number, capture in enumerate(SAMPLE)]
    # Small buffers and blocks, so that kernels stop for room in the middle of a batch.
    small = ["--output-rows", "1", "--block", "4K", "--heartbeat-interval", "7300ms"]
    answers = ["-w", str(tmp_path / "answers"), "--save-packets", str(hits)]
    done = run("replay", *inputs, *texts, *answers, *small)
    assert done.returncode == 0, done.stderr
    found = read_pcapng(hits.read_bytes())
    # One file for tshark, whose start takes a second: the captures one behind the other.
    merged = tmp_path / "merged.pcapng"
    sources = [path_of(capture) for capture in SAMPLE]
    subprocess.run(["mergecap", "-a", "-w", merged, *sources], check=True)
    for name, (_, display_filter) in QUERIES.items():
        saved = [
            (p.link, p.data, p.wirelen, p.time_ns)
            for number in range(len(SAMPLE))
            for p in found
            if p.interface == f"i{number}" and name in p.comments
        ]
        expected = filtered_by_tshark(merged, display_filter)
        assert saved == [(p.linktype, p.data, p.wirelen, p.time_ns) for p in expected], name
    assert {p.interface for p in found} >= {f"i{number}" for number in range(len(SAMPLE) - 2)}
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
    shown = subprocess.run(["capinfos", hits], check=True, capture_output=True, text=True).stdout
    assert re.search(rf"Number of packets: +{packets}\b", shown)


GROUPED: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "senders": (
        "SELECT tb, srcIP, count(*) AS c FROM TCP WHERE destPort = 443"
        " GROUP BY time_bucket('10 sec') AS tb, srcIP HAVING count(*) > 100",
        lambda p: (p.is_tcp and p.ports[1] == 443, (p.time // 10, p.source)),
        lambda groups: {key for key, members in groups.items() if len(members) > 100},
    ),
    "links": (
        "SELECT interface, protocol, count(*) AS c FROM IP GROUP BY interface, protocol"
        " HAVING count(*) BETWEEN 100 AND 1000",
        lambda p: (p.version > 0, (p.interface, p.protocol)),
        lambda groups: {key for key, members in groups.items() if 100 <= len(members) <= 1000},
    ),
    "peers": (
        "SELECT destIP, count_distinct(destPort) AS ports FROM TCP GROUP BY destIP"
        " HAVING count_distinct(destPort) > 3",
        lambda p: (p.is_tcp, p.target),
        lambda groups: {
            k for k, members in groups.items() if len({p.ports[1] for p in members}) > 3
        },
    ),
    "largest": (
        "SELECT tb, destIP, sum(len) AS bytes FROM UDP GROUP BY time/3600 AS tb, destIP"
        " ORDER BY bytes DESC LIMIT 1",
        lambda p: (p.is_udp, (p.time // 3600, p.target)),
        # Of equal sums that of the least address.
        lambda groups: {
            min(
                (-sum(p.len for p in m), int(ip_address(k[1])), k)
                for k, m in groups.items()
                if k[0] == hour
            )[2]
            for hour, _ in groups
        },
    ),
    "everything": (
        "SELECT count(*) AS c FROM TCP WHERE destPort = 22 HAVING count(*) > 10",
        lambda p: (p.is_tcp and p.ports[1] == 22, ()),
        lambda groups: {key for key, members in groups.items() if len(members) > 10},
    ),
    "nothing": (
        "SELECT srcIP, count(*) AS c FROM TCP GROUP BY srcIP HAVING count(*) > 1000000",
        lambda p: (p.is_tcp, p.source),
        lambda groups: {key for key, members in groups.items() if len(members) > 1_000_000},
    ),
}
"""Queries of groups; whether a packet is in a group, and in which; the groups of the answer."""


@dataclass(frozen=True)
class Seen:
    """A packet as tshark shows it, on an interface."""

    interface: str
    shown: Packet

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shown, name)


@needs("tshark")
def test_packets_of_groups_are_those_of_the_groups_in_the_answer(tmp_path: Path) -> None:
    hits = tmp_path / "hits.pcapng"
    captures = {"a": "ndpi-reddit.pcap", "b": "ndpi-ssh.pcap", "c": "zeek-dhcp_flood.pcap"}
    texts = {name: text for name, (text, *_) in GROUPED.items()}
    texts["openings"] = QUERIES["openings"][0]
    words = [
        word
        for name, text in texts.items()
        for word in ("-e", f"DEFINE {{ query_name '{name}'; }} {text}")
    ]
    inputs = [f"{name}={path_of(capture)}" for name, capture in captures.items()]
    answers = ["-w", str(tmp_path / "answers"), "--save-packets", str(hits)]
    done = run("replay", *inputs, *words, *answers, "--output-rows", "1", "--block", "32K")
    assert done.returncode == 0, done.stderr
    seen = [Seen(name, p) for name, c in captures.items() for p in read(path_of(c))]
    raw = [p for capture in captures.values() for p in read_capture(path_of(capture))]
    comments: dict[int, set[str]] = {}
    for number, packet in enumerate(seen):
        if packet.is_tcp and packet.flag("S"):
            comments.setdefault(number, set()).add("openings")
    for name, (_, key_of, chosen) in GROUPED.items():
        groups: dict[Any, list[Seen]] = {}
        keys = {n: key for n, p in enumerate(seen) for is_in, key in [key_of(p)] if is_in}
        for number, key in keys.items():
            groups.setdefault(key, []).append(seen[number])
        wanted = chosen(groups)
        assert bool(wanted) == (name != "nothing"), name
        for number, key in keys.items():
            if key in wanted:
                comments.setdefault(number, set()).add(name)
    expected = [
        (seen[n].interface, raw[n].data, raw[n].wirelen, raw[n].time_ns, comments[n])
        for n in sorted(comments)
    ]
    found = [
        (p.interface, p.data, p.wirelen, p.time_ns, set(p.comments))
        for name in captures
        for p in read_pcapng(hits.read_bytes())
        if p.interface == name
    ]
    assert len(found) == len(expected)
    assert found == expected
