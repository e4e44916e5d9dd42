"""Flow records from NetFlow v5, NetFlow v9 and IPFIX.

Their values, templates, samples, and losses.
"""

from __future__ import annotations

import struct
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.sources.flows.collector import MALFORMED, WITHOUT_TEMPLATE
from tests.capture.sources.flows.decoded import decoded, of_packets
from tests.capture.sources.flows.exports import (
    EXPORTED_S,
    UPTIME_MS,
    capture_of,
    fields_of,
    ipfix,
    ipfix_options,
    set_of,
    template,
    udp_packet,
    v5,
    v5_record,
    v9,
    v9_options,
)

from gscope.capture.packet.flow.layout import RECORD_BYTES
from gscope.capture.sources.base import InputState
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.flows.source import FlowSource

if TYPE_CHECKING:
    from pathlib import Path

FLOW_TEMPLATE = template(300, [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 4), (2, 4)])
SAMPLED_TEMPLATE = template(301, [(48, 1), (1, 4), (2, 4)])


def flow(source: str, count: int, protocol: int = 17, port: int = 53) -> bytes:
    addresses = ip_address(source).packed + ip_address("10.0.0.9").packed
    return addresses + struct.pack(">2HB2I", 1000, port, protocol, 100 * count, count)


def counted(found: list[Any], name: str = "packets") -> list[Any]:
    return [each if isinstance(each, str) else each.get(name) for each in found]


def test_netflow_v5_has_all_fields_at_fixed_offsets(tmp_path: Path) -> None:
    (record,), source = decoded(tmp_path, [v5([v5_record()], interval=100, engine=0x0102)])
    exported = EXPORTED_S * 10**9 + 500_000_000
    assert record == {
        "sampling_interval": 100,
        "srcPort": 1234,
        "destPort": 80,
        "srcIP": ip_address("10.0.0.1"),
        "destIP": ip_address("10.0.0.2"),
        "next_hop": ip_address("10.9.9.9"),
        "exporter": ip_address("192.0.2.1"),
        "first": exported - 2_000_000_000,
        "last": exported - 500_000_000,
        "exported": exported,
        "packets": 3,
        "bytes": 300,
        "srcAS": 64512,
        "destAS": 64513,
        "input_interface": 7,
        "output_interface": 8,
        "domain": 0x0102,
        "protocol": 6,
        "tos": 0x28,
        "flags": 0x1B,
        "src_mask": 24,
        "dest_mask": 16,
        "ipversion": 4,
    }
    assert source.damage == []
    assert source.state() is InputState.ENDED


@pytest.mark.parametrize("protocol", [1, 58])
def test_icmp_is_taken_from_the_destination_port(tmp_path: Path, protocol: int) -> None:
    records = [v5_record(ports=(0, 0x0301), protocol=protocol), v5_record(protocol=47)]
    (icmp, gre), _ = decoded(tmp_path, [v5(records)])
    assert isinstance(icmp, dict)
    assert isinstance(gre, dict)
    assert (icmp["type"], icmp["code"], icmp["destPort"]) == (3, 1, 0)
    assert "type" not in gre
    assert (gre["srcPort"], gre["destPort"]) == (0, 0)


def test_records_are_decoded_by_the_latest_template_of_their_exporter_and_domain(
    tmp_path: Path,
) -> None:
    short = template(300, [(2, 2), (1, 2)])
    packets = [
        udp_packet(v9([set_of(0, FLOW_TEMPLATE), set_of(300, flow("10.0.0.1", 4), 3)])),
        # another exporter, and another domain, have not sent it
        udp_packet(v9([set_of(300, flow("10.0.0.1", 5))]), source="192.0.2.2"),
        udp_packet(v9([set_of(300, flow("10.0.0.1", 6))], domain=2)),
        udp_packet(v9([set_of(300, flow("10.0.0.1", 7) + flow("10.0.0.2", 8))], sequence=1)),
        udp_packet(v9([set_of(0, short), set_of(300, struct.pack(">2H", 9, 90))], sequence=2)),
        udp_packet(ipfix([set_of(300, flow("10.0.0.1", 10))])),
        udp_packet(v9([set_of(0, FLOW_TEMPLATE)]), source="2001:db8::1"),
        udp_packet(v9([set_of(300, flow("10.0.0.1", 11))], sequence=1), source="2001:db8::1"),
    ]
    found, source = of_packets(tmp_path, packets)
    unknown = WITHOUT_TEMPLATE
    assert counted(found) == [4, unknown, unknown, 7, 8, 9, unknown, 11]
    assert isinstance(found[-1], dict)
    assert found[-1]["exporter"] == ip_address("2001:db8::1")
    assert source.stats.dropped_packets == 0
    assert source.stats.received_packets == 8


def test_lengths_in_records_and_elements_of_enterprises(tmp_path: Path) -> None:
    fields = [(2, 8), (99, 65535), (17, 4, 29305), (1, 8), (27, 16)]
    body = b"".join(
        struct.pack(">Q", n)
        + name
        + struct.pack(">IQ", 7, 100 * n)
        + ip_address("2001:db8::7").packed
        for n, name in ((1, b"\x03abc"), (2, b"\xff\x01\x00" + b"x" * 256), (3, b"\0"))
    )
    datagram = ipfix([set_of(2, template(400, fields)), set_of(400, body, 2)])
    found, _ = decoded(tmp_path, [datagram])
    assert counted(found) == [1, 2, 3]
    assert counted(found, "bytes") == [100, 200, 300]
    assert counted(found, "srcIP") == [ip_address("2001:db8::7")] * 3
    assert counted(found, "destAS") == [None] * 3


def test_sampling_is_that_of_options_of_samplers_or_of_the_record(tmp_path: Path) -> None:
    own = template(302, [(34, 4), (2, 4), (1, 4)])
    options = v9_options(310, [(1, 4)], [(48, 1), (50, 4)])
    plain = v9_options(311, [(1, 4)], [(34, 4)])
    sampled = [struct.pack(">B2I", sampler, 10, 1) for sampler in (1, 2, 9)]
    datagrams = [
        v9(
            [
                set_of(0, FLOW_TEMPLATE + SAMPLED_TEMPLATE + own),
                set_of(1, options),
                set_of(1, plain),
            ]
        ),
        v9([set_of(300, flow("10.0.0.1", 1))], sequence=1),
        v9([set_of(311, struct.pack(">2I", 0, 50))], sequence=2),
        v9([set_of(310, struct.pack(">IBIIBI", 0, 1, 100, 0, 2, 1000))], sequence=3),
        v9([set_of(311, struct.pack(">2I", 0, 60))], sequence=4),
        v9([set_of(301, b"".join(sampled), 1), set_of(300, flow("10.0.0.1", 1))], sequence=5),
        v9([set_of(302, struct.pack(">3I", 7, 1, 10))], sequence=6),
    ]
    found, _ = decoded(tmp_path, datagrams)
    assert counted(found, "sampling_interval") == [1, 100, 1000, 60, 60, 7]


def test_one_in_so_many_consecutive_packets(tmp_path: Path) -> None:
    spaced = ipfix_options(310, 1, [(149, 4), (305, 4), (306, 4)])
    sized = ipfix_options(311, 1, [(149, 4), (309, 4), (310, 4)])
    datagrams = [
        ipfix([set_of(2, FLOW_TEMPLATE), set_of(3, spaced), set_of(3, sized)]),
        ipfix([set_of(310, struct.pack(">3I", 1, 2, 18)), set_of(300, flow("10.0.0.1", 1))]),
        ipfix([set_of(311, struct.pack(">3I", 1, 5, 600)), set_of(300, flow("10.0.0.1", 1))], 2),
    ]
    found, source = decoded(tmp_path, datagrams)
    assert counted(found, "sampling_interval") == [10, 120]
    assert source.stats.dropped_packets == 0


TIMES = {
    "uptime": ([(22, 4), (21, 4)], struct.pack(">2I", UPTIME_MS - 3000, UPTIME_MS - 1000)),
    "uptime that began again": ([(22, 4), (21, 4)], struct.pack(">2I", 2**32 - 1000, 0)),
    "seconds": ([(150, 4), (151, 4)], struct.pack(">2I", EXPORTED_S - 3, EXPORTED_S - 1)),
    "milliseconds": (
        [(152, 8), (153, 8)],
        struct.pack(">2Q", EXPORTED_S * 1000 - 3000, EXPORTED_S * 1000 - 1000),
    ),
    "NTP": (
        [(156, 8), (157, 8)],
        struct.pack(
            ">4I", EXPORTED_S - 3 + 2_208_988_800, 0, EXPORTED_S - 1 + 2_208_988_800, 1 << 31
        ),
    ),
    "before the export": ([(158, 4), (159, 4)], struct.pack(">2I", 3_000_000, 1_000_000)),
}
BEFORE_S = {
    **dict.fromkeys(TIMES, (3.0, 1.0)),
    "uptime that began again": (UPTIME_MS / 1000 + 1, UPTIME_MS / 1000),
    "NTP": (3.0, 0.5),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_in_all_forms(tmp_path: Path, kind: str) -> None:
    fields, values = TIMES[kind]
    (record,), _ = decoded(tmp_path, [v9([set_of(0, template(300, fields)), set_of(300, values)])])
    assert isinstance(record, dict)
    before = [(EXPORTED_S * 10**9 - record[name]) / 1e9 for name in ("first", "last")]
    assert tuple(before) == BEFORE_S[kind]


def test_uptime_in_ipfix_needs_its_begin(tmp_path: Path) -> None:
    times = template(300, [(22, 4), (21, 4)])
    began = struct.pack(">IQ", 1, EXPORTED_S * 1000 - UPTIME_MS)
    data = set_of(300, struct.pack(">2I", UPTIME_MS - 3000, UPTIME_MS - 1000))
    options = set_of(3, ipfix_options(310, 1, [(149, 4), (160, 8)]))
    found, _ = decoded(
        tmp_path, [ipfix([set_of(2, times), data, options, set_of(310, began), data])]
    )
    assert counted(found, "first") == [None, (EXPORTED_S - 3) * 10**9]


def v9_data(sequence: int) -> bytes:
    return v9([set_of(0, FLOW_TEMPLATE), set_of(300, flow("10.0.0.1", 1) * 2)], sequence=sequence)


def ipfix_data(sequence: int, records: int) -> bytes:
    data = flow("10.0.0.1", 1) * records
    return ipfix([set_of(2, FLOW_TEMPLATE), set_of(300, data)], sequence)


LOST = {
    "v5": ([v5([v5_record()] * 3, n) for n in (5, 8, 21)], 10),
    "v5 that wraps": ([v5([v5_record()] * 3, n) for n in (2**32 - 4, 2**32 - 1, 2, 6)], 1),
    "v9 counts datagrams": ([v9_data(n) for n in (7, 8, 11, 12)], 2),
    "IPFIX counts records": ([ipfix_data(*n) for n in ((0, 3), (3, 5), (9, 2), (11, 1))], 1),
    "numbers that include the datagram": (
        [ipfix_data(*n) for n in ((3, 3), (8, 5), (10, 2), (20, 1), (24, 4))],
        9,
    ),
    "each comes twice": ([v9_data(n) for n in (1, 1, 2, 2, 5, 5, 6, 6)], 2),
    "two come twice": ([v9_data(n) for n in (1, 4, 5, 4, 5, 6)], 2),
    "late, and twice": ([v9_data(n) for n in (1, 5, 3, 3, 6)], 2),
    "empty ones repeat the number": ([ipfix_data(*n) for n in ((0, 3), (3, 0), (3, 2), (6, 1))], 1),
    "a datagram that is late": ([v9_data(n) for n in (1, 2, 5, 4, 6)], 1),
    "all are late": ([v5([v5_record()] * 3, n) for n in (0, 9, 3, 6, 12)], 0),
    "a restart": ([v9_data(n) for n in (2**31, 2**31 + 1, 0, 1)], 0),
    "a jump": ([v9_data(n) for n in (1, 2**30, 2**30 + 1)], 0),
}


@pytest.mark.parametrize("kind", LOST)
def test_what_is_missing_by_sequence_numbers_is_lost(tmp_path: Path, kind: str) -> None:
    datagrams, lost = LOST[kind]
    found, source = decoded(tmp_path, datagrams)
    stats = source.stats
    assert stats.dropped_packets == lost
    assert stats.received_packets == len(found) + lost


def test_exporters_and_domains_have_sequence_numbers_of_their_own(tmp_path: Path) -> None:
    packets = [
        udp_packet(v5([v5_record()], 3 * round_ + n, engine=n), source=f"192.0.2.{n + 1}")
        for round_ in range(4)
        for n in range(3)
    ]
    _, source = of_packets(tmp_path, packets)
    # Each leaves two numbers out, three times.
    assert source.stats.dropped_packets == 3 * 3 * 2


DAMAGED = {
    "a set of 3 bytes": v9([set_of(0, FLOW_TEMPLATE), struct.pack(">2H", 300, 3)]),
    "a set beyond the end": v9([set_of(0, FLOW_TEMPLATE), struct.pack(">2H", 300, 400)]),
    "a template beyond its set": v9([set_of(0, struct.pack(">2H", 300, 9) + fields_of([(1, 4)]))]),
    "options beyond their set": ipfix([set_of(3, struct.pack(">2H", 300, 9))]),
    "a length beyond its set": ipfix(
        [set_of(2, template(300, [(99, 65535)])), set_of(300, b"\x09abcde")]
    ),
    "a template that is none": v9([set_of(0, struct.pack(">2H", 255, 1))]),
    "another version to a port of collectors": struct.pack(">H", 8) + bytes(60),
    "v5 with more records than it says": v5([v5_record()] * 2, count=1),
    "one byte": b"x",
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_datagrams_are_counted_once(tmp_path: Path, kind: str) -> None:
    good = v5([v5_record()])
    found, source = decoded(tmp_path, [good, DAMAGED[kind], good])
    assert counted(found) == [3, MALFORMED, 3]
    assert source.damage == []


def test_cut_datagrams_hand_out_their_whole_records(tmp_path: Path) -> None:
    whole = udp_packet(v5([v5_record()] * 3))
    found, _ = of_packets(tmp_path, [whole[:-10]])
    assert counted(found) == [3, 3, MALFORMED]


def test_fragments_are_malformed(tmp_path: Path) -> None:
    first = bytearray(udp_packet(v5([v5_record()] * 3)))[:-48]
    first[6] |= 0x20
    second = bytearray(udp_packet(b"")[:20] + v5_record())
    second[7] = 16
    found, _ = of_packets(tmp_path, [bytes(first), bytes(second)])
    assert counted(found) == [3, 3, MALFORMED]


def test_datagrams_are_recognised_on_any_port_by_their_content(tmp_path: Path) -> None:
    packets = [
        udp_packet(v5([v5_record()]), port=9999),
        udp_packet(struct.pack(">2H", 9, 100) + bytes(60), port=53),
        udp_packet(v9_data(1), port=53),
    ]
    found, _ = of_packets(tmp_path, packets)
    assert counted(found) == [3, 1, 1]


def test_a_capture_without_exports_says_so(tmp_path: Path) -> None:
    found, source = of_packets(tmp_path, [udp_packet(b"hello", port=53)] * 3)
    assert found == []
    assert source.stats.received_packets == 0
    assert "none of 3 packets is an export of flow records" in source.damage[0]


@pytest.mark.parametrize("fields", [[(99, 0)], [], [(1, 60000), (2, 60000)]])
def test_templates_whose_records_have_no_length_are_not_kept(
    tmp_path: Path, fields: list[tuple[int, ...]]
) -> None:
    datagram = ipfix([set_of(2, template(300, fields)), set_of(300, bytes(8))])
    found, _ = decoded(tmp_path, [datagram])
    assert found == [WITHOUT_TEMPLATE]


def test_a_datagram_may_have_a_record_in_each_byte(tmp_path: Path) -> None:
    data = set_of(300, bytes([6]) * 60000)
    datagrams = [v9([set_of(0, template(300, [(4, 1)]))]), v9([data], 1), v9([data], 2)]
    path = tmp_path / "exports.pcap"
    path.write_bytes(capture_of(map(udp_packet, datagrams)))
    source = FlowSource(open_source(str(path)))
    counts = []
    while (block := source.next_block()) is not None:
        counts.append(block.count)
        assert int(block.offset[block.count - 1]) + RECORD_BYTES <= block.capacity_bytes
    source.close()
    assert counts == [60_000, 60_000]


def test_more_exporters_than_there_is_room_for_are_reported(tmp_path: Path) -> None:
    packets = [
        udp_packet(v9([set_of(0, FLOW_TEMPLATE), set_of(300, flow("10.0.0.1", 1))], domain=n))
        for n in range(6000)
    ]
    found, source = of_packets(tmp_path, packets)
    without = found.count(WITHOUT_TEMPLATE)
    assert 0 < without < 6000
    assert len(found) == 6000
    assert "there was no room for the state of an exporter" in source.damage[0]
