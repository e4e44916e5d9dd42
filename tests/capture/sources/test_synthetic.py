"""Synthetic traffic, read back with dpkt as a second opinion."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import dpkt
import numpy as np
import pytest

from gscope.capture.sources.synthetic.frames import TEMPLATES
from gscope.capture.sources.synthetic.source import (
    TrafficProfile,
    file_header,
    packet_blocks,
    write_pcap,
)
from gscope.capture.sources.synthetic.trains import (
    DNS_ANSWER_BYTES,
    DNS_QUERY_BYTES,
    HTTP_REQUEST_BYTES,
    Content,
)
from gscope.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

WHOLE: dict[str, Any] = {"snaplen": 1514, "flows": 2_000, "stable_flows": 20, "churn_s": 0.1}


def _capture(profile: TrafficProfile, packets: int) -> bytes:
    blocks = [block.tobytes() for block in packet_blocks(profile, packets)]
    return file_header(profile) + b"".join(blocks)


def _read(capture: bytes) -> list[tuple[float, bytes]]:
    return list(dpkt.pcap.Reader(io.BytesIO(capture)))


def _segments(profile: TrafficProfile, packets: int) -> list[tuple[tuple[Any, ...], Any]]:
    found = []
    for _, frame in _read(_capture(profile, packets)):
        ip = dpkt.ethernet.Ethernet(frame).data
        if isinstance(ip, (dpkt.ip.IP, dpkt.ip6.IP6)) and isinstance(ip.data, dpkt.tcp.TCP):
            found.append(((ip.src, ip.data.sport, ip.dst, ip.data.dport), ip.data))
    return found


def test_the_same_seed_gives_the_same_bytes() -> None:
    profile = TrafficProfile(seed=7, flows=500)
    assert _capture(profile, 3_000) == _capture(profile, 3_000)
    assert _capture(profile, 3_000) != _capture(TrafficProfile(seed=8, flows=500), 3_000)


def test_a_longer_capture_begins_with_the_shorter_one() -> None:
    profile = TrafficProfile(flows=500)
    assert _capture(profile, 90_000).startswith(_capture(profile, 1_234))


@pytest.mark.parametrize("packets", [0, 1, 5_000])
def test_the_file_has_as_many_packets_as_asked_for(tmp_path: Path, packets: int) -> None:
    path = tmp_path / "trace.pcap"
    size = write_pcap(TrafficProfile(flows=500), path, packets)
    assert path.stat().st_size == size
    assert len(_read(path.read_bytes())) == packets


def test_arrivals_follow_the_rate_and_never_go_back() -> None:
    profile = TrafficProfile(packets_per_second=50_000, flows=500)
    times = np.array([time for time, _ in _read(_capture(profile, 40_000))])
    gaps = np.diff(times)
    assert gaps.min() >= 0
    assert times[-1] - times[0] == pytest.approx(0.8, rel=0.05)
    # The standard deviation of a Poisson process's gaps is their mean.
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)


def test_no_frame_is_longer_than_the_snap_length() -> None:
    frames = _read(_capture(TrafficProfile(snaplen=60, flows=500), 2_000))
    assert max(len(frame) for _, frame in frames) == 60


def test_ip_and_icmp_checksums_are_right() -> None:
    profile = TrafficProfile(**WHOLE, ping_share=0.2, ipv6_share=0.5)
    seen: Counter[str] = Counter()
    for _, frame in _read(_capture(profile, 3_000)):
        ip = dpkt.ethernet.Ethernet(frame).data
        if isinstance(ip, dpkt.ip.IP):
            seen["ip"] += 1
            assert dpkt.in_cksum(bytes(ip)[:20]) == 0
            if isinstance(ip.data, dpkt.icmp.ICMP):
                seen["icmp"] += 1
                assert dpkt.in_cksum(bytes(ip)[20 : ip.len]) == 0
        elif isinstance(ip, dpkt.ip6.IP6) and ip.nxt == 58:
            seen["icmp6"] += 1
            pseudo = ip.src + ip.dst + ip.plen.to_bytes(4, "big") + (58).to_bytes(4, "big")
            assert dpkt.in_cksum(pseudo + bytes(ip)[40 : 40 + ip.plen]) == 0
    assert min(seen["ip"], seen["icmp"], seen["icmp6"]) > 50


def test_sequence_numbers_add_up_over_chunks_of_traffic() -> None:
    profile = TrafficProfile(**WHOLE, retransmission_rate=0.0)
    expected: dict[tuple[Any, ...], int] = {}
    checked = 0
    for flow, tcp in _segments(profile, 100_000):
        opened = tcp.flags & dpkt.tcp.TH_SYN
        if flow in expected and not opened:
            assert tcp.seq == expected[flow]
            checked += 1
        closed = tcp.flags & dpkt.tcp.TH_FIN
        length = len(tcp.data) if tcp.off == 5 and len(tcp.data) > 6 else 0
        expected[flow] = (tcp.seq + length + bool(opened) + bool(closed)) & 0xFFFFFFFF
    assert checked > 30_000


def test_connections_open_with_a_handshake_and_close_with_fins() -> None:
    flags = defaultdict(list)
    profile = TrafficProfile(**WHOLE, retransmission_rate=0.0)
    for flow, tcp in _segments(profile, 30_000):
        pair = (min(flow[:2], flow[2:]), max(flow[:2], flow[2:]))
        flags[pair].append(tcp.flags)
    syn, ack, fin = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK, dpkt.tcp.TH_FIN
    opened = [seen for seen in flags.values() if seen[0] == syn and len(seen) > 2]
    assert len(opened) > 300
    assert all(seen[1:3] == [syn | ack, ack] for seen in opened)
    closed = [seen for seen in opened if seen[-1] == ack and seen[-2] == fin | ack]
    assert len(closed) > 100
    assert all(seen[-3] == fin | ack for seen in closed)


def test_retransmitted_segments_repeat_their_sequence_number() -> None:
    profile = TrafficProfile(**WHOLE, retransmission_rate=0.1)
    segments = Counter(
        (flow, tcp.seq) for flow, tcp in _segments(profile, 20_000) if len(tcp.data) > 6
    )
    repeated = sum(count - 1 for count in segments.values())
    assert 0.05 < repeated / segments.total() < 0.12


def test_shares_of_versions_and_tags_are_as_asked_for() -> None:
    profile = TrafficProfile(
        flows=2_000, zipf_exponent=0, ipv6_share=0.3, vlan_share=0.25, arp_share=0
    )
    frames = [dpkt.ethernet.Ethernet(frame) for _, frame in _read(_capture(profile, 20_000))]
    versions = Counter(frame.data.v for frame in frames)
    assert versions[6] / versions.total() == pytest.approx(0.3, abs=0.03)
    tagged = sum(hasattr(frame, "vlan_tags") for frame in frames)
    assert tagged / len(frames) == pytest.approx(0.25, abs=0.03)


def test_a_share_of_nothing_gives_nothing() -> None:
    profile = TrafficProfile(flows=500, ipv6_share=0, arp_share=0, ping_share=0)
    frames = [dpkt.ethernet.Ethernet(frame) for _, frame in _read(_capture(profile, 5_000))]
    assert {frame.type for frame in frames} == {dpkt.ethernet.ETH_TYPE_IP}
    assert {frame.data.p for frame in frames} <= {dpkt.ip.IP_PROTO_TCP, dpkt.ip.IP_PROTO_UDP}


def test_a_get_within_the_snap_length_names_its_host() -> None:
    frames = _read(_capture(TrafficProfile(), 5_000))
    requests = [frame[54:] for _, frame in frames if frame[54:58] == b"GET "]
    assert len(requests) > 20
    assert all(request[16:].startswith(b"Host: site") for request in requests)
    assert all(request[28:38] == b".example\r\n" for request in requests)


def test_dns_answers_match_their_queries() -> None:
    queries: dict[Any, str] = {}
    answers: dict[Any, str] = {}
    for _, frame in _read(_capture(TrafficProfile(**WHOLE, dns_share=0.5), 5_000)):
        ip = dpkt.ethernet.Ethernet(frame).data
        udp = getattr(ip, "data", None)
        if isinstance(udp, dpkt.udp.UDP) and 53 in (udp.sport, udp.dport):
            dns = dpkt.dns.DNS(udp.data)
            client = ip.dst if dns.qr else ip.src
            (answers if dns.qr else queries)[client, dns.id] = dns.qd[0].name
    assert len(answers) > 200
    assert answers.items() <= queries.items()


def test_templates_are_as_long_as_the_payloads_they_begin() -> None:
    lengths = {
        Content.HTTP_REQUEST: HTTP_REQUEST_BYTES,
        Content.DNS_QUERY: DNS_QUERY_BYTES,
        Content.DNS_ANSWER: DNS_ANSWER_BYTES,
    }
    assert {content: len(TEMPLATES[content]) for content in lengths} == lengths


@pytest.mark.parametrize(
    ("knob", "value"),
    [("ipv6_share", 1.5), ("snaplen", 0), ("flows", 0), ("packets_per_second", 0.0), ("seed", -1)],
)
def test_an_impossible_profile_is_refused_by_name(knob: str, value: float) -> None:
    with pytest.raises(UsageError, match=knob):
        TrafficProfile(**{knob: value})  # type: ignore[arg-type]


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot write"):
        write_pcap(TrafficProfile(flows=10), tmp_path / "no" / "trace.pcap", 1)
