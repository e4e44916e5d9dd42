"""For each query of the library the oracle that computes the same without gscope.

Queries for users are compared with plain loops over what tshark shows of each packet; the published
ones with golden cases, whose references are loops over packets that the tests decode themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.library import (
    oracles_ip,
    oracles_names,
    oracles_samples,
    oracles_tcp,
    oracles_windows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.library.tshark import Packet

GARBAGE = "ndpi-ip_fragmented_garbage.pcap"
"""A capture with TCP headers that claim to be shorter than 20 bytes: tshark shows no flags of
them."""

_FLAGS_OF_GARBAGE = {GARBAGE: "TCP headers shorter than 20 bytes, whose flags tshark does not show"}


@dataclass(frozen=True, slots=True)
class Oracle:
    """What a query is compared with.

    Attributes:
        rows: computes the rows from the packets of the trace.
        reads: the facts of tshark that it rests on, for the table in the documentation.
        differs: parts of the trace where rows differ, and why; everywhere else all rows agree.
        seconds: the seconds that 1 of the first value stands for, which the answer shows as the
            time at which they begin; None if the answer has the value itself.
    """

    rows: Callable[[Sequence[Packet]], Iterable[tuple[object, ...]]]
    reads: str
    differs: dict[str, str] = field(default_factory=dict)
    seconds: int | None = 60


ORACLES: dict[str, Oracle] = {
    "arp_conflicts": Oracle(oracles_ip.arp_conflicts, "sender's addresses of ARP"),
    "beacons": Oracle(oracles_tcp.beacons, "SYN without ACK by minute", seconds=3600),
    "broadcasts": Oracle(oracles_ip.broadcasts, "target MAC addresses"),
    "congestion_marks": Oracle(oracles_ip.congestion_marks, "ECN of IPv4 and IPv6"),
    "connections": Oracle(
        oracles_tcp.connections, "packets of each direction, cut by time", _FLAGS_OF_GARBAGE
    ),
    "conversations": Oracle(oracles_ip.conversations, "addresses, lengths"),
    "dhcp_servers": Oracle(oracles_ip.dhcp_servers, "DHCP type and client's hardware address"),
    "dns_failures": Oracle(oracles_names.dns_failures, "DNS names and response codes"),
    "dns_names": Oracle(
        oracles_names.dns_names,
        "DNS names and types of questions",
        {"ndpi-fuzz-2006-06-26-2594.pcap": "damaged names, which tshark shows differently"},
    ),
    "failed_handshakes": Oracle(
        oracles_tcp.failed_handshakes,
        "SYN, SYN-ACK and RST of each initial sequence number",
        _FLAGS_OF_GARBAGE,
    ),
    "flow": Oracle(oracles_ip.flow, "addresses, protocol, ports, lengths", seconds=10),
    "fragments": Oracle(oracles_ip.fragments, "fragment offset and more-fragments flag"),
    "handshake_delay": Oracle(
        oracles_tcp.handshake_delay, "first SYN and first SYN-ACK of each initial sequence number"
    ),
    "frequent_flows": Oracle(
        oracles_samples.frequent_flows, "addresses, protocol, ports, in order of time"
    ),
    "heavy_hitters": Oracle(oracles_ip.heavy_hitters, "addresses and lengths"),
    "host_scan": Oracle(oracles_tcp.host_scan, "targets of SYN without ACK"),
    "http_hosts": Oracle(oracles_names.http_hosts, "HTTP method and host"),
    "icmp_unreachable": Oracle(oracles_ip.icmp_unreachable, "types of ICMP and ICMPv6", seconds=10),
    "link_load": Oracle(oracles_ip.link_load, "lengths of frames by second", seconds=1),
    "load_last_minute": Oracle(
        oracles_windows.load_last_minute, "times and lengths of frames", seconds=1
    ),
    "load_percentiles": Oracle(
        oracles_ip.load_percentiles, "lengths of frames by second", seconds=3600
    ),
    "many_sources": Oracle(oracles_samples.many_sources, "addresses, hashed by XXH64"),
    "new_hosts": Oracle(oracles_ip.new_hosts, "source addresses by hour", seconds=3600),
    "new_tls_names": Oracle(
        oracles_names.new_tls_names, "server name indication by hour", seconds=3600
    ),
    "odd_flags": Oracle(oracles_tcp.odd_flags, "TCP flags", _FLAGS_OF_GARBAGE),
    "packet_sizes": Oracle(oracles_ip.packet_sizes, "lengths of frames"),
    "port_scan": Oracle(oracles_tcp.port_scan, "ports of SYN without ACK"),
    "protocol_mix": Oracle(oracles_ip.protocol_mix, "IP version, protocol, lengths"),
    "random_flows": Oracle(
        oracles_samples.random_flows, "addresses, protocol, ports, lengths; SplitMix64"
    ),
    "resets": Oracle(oracles_tcp.resets, "RST", _FLAGS_OF_GARBAGE),
    "recent_host_scan": Oracle(
        oracles_windows.recent_host_scan, "times and targets of SYN without ACK", seconds=30
    ),
    "retransmissions": Oracle(
        oracles_tcp.retransmissions, "sequence numbers of data, SYN and FIN, in order of time"
    ),
    "routing_loops": Oracle(oracles_ip.routing_loops, "types of ICMP and ICMPv6"),
    "sampled_flows": Oracle(oracles_samples.sampled_flows, "addresses, protocol, ports, lengths"),
    "slow_dns": Oracle(oracles_names.slow_dns, "first question and first answer of each lookup"),
    "syn_flood": Oracle(oracles_tcp.syn_flood, "SYN and ACK of each client", seconds=10),
    "tls_names": Oracle(oracles_names.tls_names, "server name indication"),
    "top_ports": Oracle(oracles_ip.top_ports, "target ports, lengths"),
    "top_receivers": Oracle(oracles_ip.top_receivers, "target addresses, lengths"),
    "top_talkers": Oracle(oracles_ip.top_talkers, "source addresses, lengths"),
    "talkers_last_hour": Oracle(
        oracles_windows.talkers_last_hour, "times, source addresses, lengths"
    ),
    "traffic_matrix": Oracle(oracles_ip.traffic_matrix, "addresses, lengths"),
    "ttl_changes": Oracle(oracles_ip.ttl_changes, "time to live and hop limit"),
    "tunnels": Oracle(oracles_ip.tunnels, "both IP headers"),
    "udp_jitter": Oracle(oracles_ip.udp_jitter, "IPv4 identifications, times", seconds=10),
    "vlans": Oracle(oracles_ip.vlans, "VLAN tags, source MAC addresses"),
    "zero_windows": Oracle(oracles_tcp.zero_windows, "window and flags"),
}

FIELDS: dict[str, Oracle] = {
    "dns_fields": Oracle(
        oracles_names.dns_fields,
        "DNS fields",
        {
            "ndpi-fuzz-2006-06-26-2594.pcap": "damaged messages, of which tshark shows some fields",
            **dict.fromkeys(
                (
                    f"what {query} finds"
                    for query in (
                        "heavy_hitters",
                        "packet_sizes",
                        "talkers_last_hour",
                        "top_receivers",
                        "top_talkers",
                    )
                ),
                "zeros at port 53, of which tshark shows some fields",
            ),
        },
        seconds=None,
    ),
}
"""Oracles of queries that are not in the library, but in ``FIELD_QUERIES``: what functions read."""

FIELD_QUERIES = """
DEFINE { query_name 'dns_fields'; }
SELECT time, srcIP, srcPort, dns_id(UDP_data) AS id, dns_opcode(UDP_data) AS opcode,
       dns_qname(UDP_data) AS name, dns_qtype(UDP_data) AS type, dns_qclass(UDP_data) AS class,
       dns_is_response(UDP_data) AS is_response, dns_authoritative(UDP_data) AS authoritative,
       dns_truncated(UDP_data) AS truncated, dns_rcode(UDP_data) AS rcode,
       dns_answers(UDP_data) AS answers,
       if_else(dns_qtype(UDP_data) IN (1, 28), dns_address(UDP_data), NULL) AS address
FROM UDP
WHERE (srcPort = 53 OR destPort = 53) AND dns_id(UDP_data) IS NOT NULL
"""

SECOND: dict[str, Oracle] = {
    "slow_dns": Oracle(
        oracles_names.slow_answers,
        "`dns.time`, by which tshark itself matches answers with questions",
        {
            "ndpi-fuzz-2006-06-26-2594.pcap": "damaged names and ids,"
            " which tshark matches differently",
            "zeek-ipv6-fragmented-dns.pcap": "a repeated question,"
            " from which tshark starts counting again",
        },
    ),
}
"""Second oracles of queries for which tshark has an answer of its own."""

PUBLISHED: dict[str, str] = {
    "all_syn_count": "matched_syn_ratio",
    "dup_all_count": "published_counts",
    "dup_ratio": "dup_ratio",
    "dup_seq": "dup_seq",
    "flow": "flow",
    "flow_cnt": "published_counts",
    "flow_dup_count": "published_counts",
    "flow_pairs": "flow_pairs",
    "flows": "flow_pairs",
    "full_flow": "full_flow",
    "heavy_flows": "flow_pairs",
    "hostname_counts": "published_counts",
    "hostnames": "hostnames",
    "jitter": "jitter",
    "matched_syn_count": "matched_syn_ratio",
    "matched_syn_ratio": "matched_syn_ratio",
    "max_dups": "max_dups",
    "merged_tcp": "published_merges",
    "pair_len": "pair_len",
    "per_pair": "published_counts",
    "per_source": "per_source",
    "snort_all": "snort_windows",
    "snort_paned": "snort_windows",
    "snort_sources": "snort_windows",
    "subnet_stats": "subnets",
    "suspicious": "suspicious",
    "syn_ack_delay": "syn_ack_delay",
    "tcp_count": "published_counts",
    "tcp_flows": "tcp_flows",
    "traffic_share": "traffic_share",
    "union_filtered": "published_merges",
}
"""The golden case that answers each published query, alone or as one that another reads."""

PUBLISHED_OTHERWISE: dict[str, str] = {
    "hostnames": "`time/60 as tb` for `(time/60)*60`",
    "subnet_stats": "`FROM IP` for `FROM TCP`",
}
"""Published queries that their golden case has in another spelling, and how it differs."""
