"""Fifty queries of the library as one query set for one interface, with unique names."""

from __future__ import annotations

import re
from pathlib import Path

LIBRARY = Path(__file__).parents[1] / "queries" / "library"

_FIFTY = """
arp_conflicts beacons congestion_marks connections dhcp_servers dns_failures dup_all_count
dup_ratio dup_seq flow flow_cnt flow_dup_count flow_pairs fragments handshake_delay heavy_flows
heavy_hitters host_scan hostname_counts hostnames http_hosts icmp_unreachable jitter link_load
matched_syn_ratio max_dups new_hosts odd_flags packet_sizes per_pair per_source port_scan
protocol_mix resets retransmissions routing_loops slow_dns subnet_stats suspicious syn_ack_delay
syn_flood tcp_count tls_names top_ports top_talkers traffic_matrix tunnels udp_jitter vlans
zero_windows
"""
"""The queries of the set, which stays the same while the library grows.

They read one interface, and the answer of none grows with the square of the traffic.
"""

_NAMED = re.compile(r"query_name\s+'(\w+)'")


def fifty_queries() -> dict[str, str]:
    """Return the text of each query by its name; its parts are named after it.

    Queries share no names, so each is the same as alone.
    """
    queries = {}
    for name in _FIFTY.split():
        (path, *_) = sorted(LIBRARY.rglob(f"{name}.gsql"), key=lambda path: len(path.parts))
        text = path.read_text()
        for part in _NAMED.findall(text):
            if part != name:
                text = re.sub(rf"\b{part}\b", f"{name}_{part}", text)
        queries[name] = text
    return queries
