"""Flow records from sFlow version 5.

Their values, losses and damage, as a slow reader finds them.
"""

from __future__ import annotations

import struct
from ipaddress import ip_address
from typing import TYPE_CHECKING

import dpkt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.sources.flows.collector import MALFORMED
from tests.capture.sources.flows.decoded import of_packets
from tests.capture.sources.flows.exports import EXPORTED_S, udp_packet, v5, v5_record
from tests.capture.sources.flows.sflow import (
    AGENT,
    counters,
    datagram,
    expanded,
    gateway,
    header,
    item,
    read,
    router,
    sample,
    sampled_ipv4,
    sampled_ipv6,
    switch,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.capture.sources.flows.collector import Record

    from gscope.capture.sources.flows.source import FlowSource

PORT = 6343
STEP_NS = 1_000_000


def tcp_frame(vlan: int | None = None) -> bytes:
    tcp = dpkt.tcp.TCP(sport=50_000, dport=443, flags=0x18, data=b"x" * 40)
    ip = dpkt.ip.IP(src=b"\x0a\0\0\1", dst=b"\x0a\0\0\2", p=6, tos=0x28, data=tcp)
    ip.len = len(ip)
    return ethernet(bytes(ip), 0x0800, vlan)


def icmp6_frame() -> bytes:
    echo = dpkt.icmp6.ICMP6(type=128, code=0, data=b"ping....")
    addresses = ip_address("2001:db8::5").packed, ip_address("2001:db8::6").packed
    ip = dpkt.ip6.IP6(src=addresses[0], dst=addresses[1], nxt=58, hlim=64, data=echo)
    ip.plen, ip.p = len(echo), 58
    return ethernet(bytes(ip), 0x86DD)


def ethernet(packet: bytes, ethertype: int, vlan: int | None = None) -> bytes:
    tag = b"" if vlan is None else struct.pack(">2H", 0x8100, vlan)
    return bytes(6) + b"\2" * 6 + tag + struct.pack(">H", ethertype) + packet


def decoded(folder: Path, datagrams: Iterable[bytes]) -> tuple[list[Record | str], FlowSource]:
    return of_packets(folder, [udp_packet(each, port=PORT) for each in datagrams])


def expected(datagrams: Iterable[bytes]) -> list[Record | str]:
    found: list[Record | str] = []
    for n, each in enumerate(datagrams):
        found += read(each, EXPORTED_S * 10**9 + n * STEP_NS)
    return found


def test_a_sampled_header_has_the_fields_of_its_packet(tmp_path: Path) -> None:
    records = [
        header(tcp_frame(7), 1518),
        switch(99),
        router("192.0.2.7"),
        gateway(64512, [[1, 2], [3]]),
    ]
    (record,), source = decoded(tmp_path, [datagram([sample(records, 1000)], sub_agent=2)])
    arrived = EXPORTED_S * 10**9
    assert record == {
        "sampling_interval": 1000,
        "srcPort": 50_000,
        "destPort": 443,
        "srcIP": ip_address("10.0.0.1"),
        "destIP": ip_address("10.0.0.2"),
        "next_hop": ip_address("192.0.2.7"),
        "exporter": ip_address(AGENT),
        "first": arrived,
        "last": arrived,
        "packets": 1,
        "bytes": 1518,
        "srcAS": 64512,
        "destAS": 3,
        "input_interface": 3,
        "output_interface": 4,
        "domain": 2,
        "vlan": 7,
        "protocol": 6,
        "tos": 0x28,
        "flags": 0x18,
        "src_mask": 24,
        "dest_mask": 16,
        "ipversion": 4,
    }
    assert source.damage == []


SAMPLES = {
    "expanded": expanded([header(tcp_frame())]),
    "interfaces that are none": sample([header(tcp_frame())], interfaces=(0x3FFFFFFF, 0x80000005)),
    "expanded interfaces that are none": expanded([], interfaces=(2, 5, 0, 0x3FFFFFFF)),
    "ICMPv6": sample([header(icmp6_frame())]),
    "ARP": sample([header(ethernet(bytes(46), 0x0806)), switch(12)]),
    "another link layer": sample([header(b"\x0f\0\x08\0" + bytes(30), 100, protocol=5)]),
    "decoded IPv4": sample([sampled_ipv4(), switch(12), router(None)]),
    "decoded UDP": sample([sampled_ipv4(protocol=17)]),
    "decoded IPv6": sample([sampled_ipv6(), router("2001:db8::99", (64, 300))]),
    "decoded, after a header": sample([header(tcp_frame()), sampled_ipv6()]),
    "decoded, before a header": sample([sampled_ipv4(), header(icmp6_frame())]),
    "two headers": sample([header(tcp_frame()), header(icmp6_frame())]),
    "only its length": sample([item(2, struct.pack(">I", 90) + bytes(20))]),
    "an empty path": sample([gateway(64512, [])]),
    "nothing known": sample([item(4300 << 12 | 2, bytes(8))], rate=0),
    "counters": counters(),
    "another enterprise": item(9 << 12 | 1, b"abcd"),
    "a record beyond its sample": sample([struct.pack(">2I", 1, 400)]),
    "fewer records than it says": item(1, struct.pack(">8I", 1, 3, 5, 5, 0, 1, 2, 9)),
    "a header beyond its record": sample([item(1, struct.pack(">4I", 1, 60, 4, 61) + bytes(60))]),
    "a short sample": item(3, bytes(40)),
    "an address of no family": sample(
        [router("192.0.2.1").replace(b"\0\0\0\1\xc0", b"\0\0\0\7\xc0")]
    ),
    "a path beyond its record": sample([item(1003, bytes(16) + struct.pack(">3I", 1, 2, 1 << 30))]),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_sample_is_read_as_the_slow_reader_does(tmp_path: Path, kind: str) -> None:
    good = sample([header(tcp_frame())])
    datagrams = [datagram([good, SAMPLES[kind], good]), datagram([SAMPLES[kind]], 1)]
    found, source = decoded(tmp_path, datagrams)
    assert found == expected(datagrams)
    assert source.stats.dropped_packets == 0


def test_headers_of_ip_without_a_link_layer(tmp_path: Path) -> None:
    frames = header(tcp_frame()[14:], protocol=11), header(icmp6_frame()[14:], protocol=12)
    found, _ = decoded(tmp_path, [datagram([sample([each]) for each in frames])])
    with_link = header(tcp_frame(), 98), header(icmp6_frame(), 66)
    assert [{**each, "bytes": 0} for each in found if isinstance(each, dict)] == [
        {**each, "bytes": 0}
        for each in expected([datagram([sample([each]) for each in with_link])])
        if isinstance(each, dict)
    ]


def test_missing_datagrams_of_each_agent_are_lost(tmp_path: Path) -> None:
    def of(sequence: int, sub_agent: int, agent: str = AGENT) -> bytes:
        return datagram([sample([])], sequence, sub_agent=sub_agent, agent=agent)

    datagrams = [of(1, 0), of(7, 1), of(2, 0), of(5, 0), of(8, 1), of(9, 1, "2001:db8::1")]
    found, source = decoded(tmp_path, datagrams)
    assert len(found) == 6
    assert source.stats.dropped_packets == 2
    assert source.stats.received_packets == 8


def test_netflow_of_the_same_numbers_is_another_stream(tmp_path: Path) -> None:
    datagrams = [
        datagram([sample([])], 1, agent="192.0.2.1"),
        v5([v5_record()], 100),
        datagram([sample([])], 2, agent="192.0.2.1"),
        v5([v5_record()], 101),
    ]
    _, source = decoded(tmp_path, datagrams)
    assert source.stats.dropped_packets == 0


def test_more_samples_than_there_are_is_damage(tmp_path: Path) -> None:
    datagrams = [datagram([sample([])], count=3), datagram([sample([])], 1, count=5)]
    found, _ = decoded(tmp_path, datagrams)
    assert found == expected(datagrams)
    assert found[-1] == MALFORMED


def test_a_cut_datagram_hands_out_its_whole_samples(tmp_path: Path) -> None:
    whole = datagram([sample([header(tcp_frame())])] * 3)
    found, _ = of_packets(tmp_path, [udp_packet(whole, port=PORT)[:-10]])
    assert [each == MALFORMED for each in found] == [False, False, True]


def test_other_versions_at_the_port_of_sflow_are_malformed(tmp_path: Path) -> None:
    found, _ = decoded(tmp_path, [struct.pack(">2I", 4, 1) + bytes(60)])
    assert found == [MALFORMED]


RECORDS = st.one_of(
    st.sampled_from(
        (
            header(tcp_frame()),
            header(icmp6_frame()),
            header(tcp_frame(5)),
            sampled_ipv4(),
            sampled_ipv6(),
            switch(4),
            router("192.0.2.9"),
            router("2001:db8::9"),
            gateway(65000, [[1, 2, 3]]),
            gateway(65000, []),
        )
    ),
    st.builds(item, st.sampled_from((2, 3, 4, 1001, 1002, 1003, 99)), st.binary(max_size=60)),
)


@st.composite
def samples(draw: st.DrawFn) -> bytes:
    """A sample whose records are sound or have any content."""
    records, rate = draw(st.lists(RECORDS, max_size=4)), draw(st.integers(0, 2**32 - 1))
    return sample(records, rate) if draw(st.booleans()) else expanded(records, rate)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sflow")


@settings(max_examples=60)
@given(
    each=st.lists(
        st.lists(st.one_of(samples(), samples(), st.just(counters())), min_size=1, max_size=4),
        min_size=1,
        max_size=4,
    )
)
def test_the_kernel_and_the_slow_reader_agree(each: list[list[bytes]], folder: Path) -> None:
    datagrams = [datagram(found, n) for n, found in enumerate(each)]
    found, _ = decoded(folder, datagrams)
    assert found == expected(datagrams)


@settings(max_examples=60)
@given(
    data=st.lists(samples(), min_size=1, max_size=3).map(datagram),
    changes=st.lists(st.tuples(st.integers(28, 400), st.integers(0, 255)), max_size=6),
)
def test_no_bytes_harm(data: bytes, changes: list[tuple[int, int]], folder: Path) -> None:
    damaged = bytearray(data)
    for at, byte in changes:
        if at < len(damaged):
            damaged[at] = byte
    found, source = decoded(folder, [bytes(damaged)])
    assert len(found) <= len(damaged) // 8 + 1
    assert source.stats.received_packets == len(found)
