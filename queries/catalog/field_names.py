"""Names that other tools give to fields: columns of SQL tables, Wireshark, tcpdump, nfdump.

``FIELD_ALIASES`` in ``protocols.py`` has the spellings of publications. Those here are looked up
last, behind the columns and aliases of a query.
"""

from __future__ import annotations

SYNONYMS: dict[str, str] = {
    synonym: name
    for name, synonyms in {
        "interface": "iface ifname device frame.interface_name",
        "timestamp": "ts frame.time",
        "len": "length bytes size octets byt frame_len frame_length packet_length packet_len "
        "packet_size pkt_len pkt_size wire_len wirelen orig_len",
        "caplen": "cap_len captured_length capture_length incl_len",
        "srcMAC": "src_mac smac source_mac mac_src eth_src ether_src",
        "destMAC": "dst_mac dmac dest_mac destination_mac mac_dst eth_dst ether_dst",
        "vlan": "vlan_id vlanid vid",
        "ethertype": "eth_type ether_type",
        "ipversion": "ip_version version",
        "srcIP": "src src_addr srcaddr source source_ip source_address source_addr src_host sa "
        "saddr ip_src sip",
        "destIP": "dst dest dst_addr dstaddr dest_addr destination destination_ip "
        "destination_address dst_host da daddr ip_dst dip",
        "srcPort": "sport source_port sp spt",
        "destPort": "dport destination_port dp dpt",
        "protocol": "proto prot ip_proto ipproto pr",
        "ttl": "ip_ttl hlim hop_limit hoplimit",
        "total_length": "ip_len ip_length",
        "id": "ip_id",
        "offset": "frag_offset fragment_offset",
        "more_fragments": "mf",
        "dont_fragment": "df",
        "data": "payload",
        "flags": "tcp_flags tcpflags flg",
        "sequence_number": "seqno seq_no seqnum tcp_seq",
        "ack_number": "ackno ack_no acknum ack_num ack_seq tcp_ack",
        "window": "win window_size",
        "data_length": "payload_length payload_len payload_size data_len tcp_len",
        "udp_length": "udp_len",
        "type": "icmp_type",
        "code": "icmp_code",
        "op": "arp_op opcode operation",
        "senderIP": "sender_ip",
        "senderMAC": "sender_mac",
        "targetIP": "target_ip",
        "targetMAC": "target_mac",
        "qname": "query name domain dns_name query_name",
        "qtype": "query_type dns_type",
        "rcode": "response_code dns_rcode",
        "response": "is_response qr",
        "method": "http_method request_method",
        "host": "hostname",
        "path": "uri_path",
        "server_name": "sni",
    }.items()
    for synonym in synonyms.split()
}
"""Other names of fields, in lower case."""

WIRESHARK: dict[str, tuple[str, str]] = {
    name: (protocol, field)
    for protocol, names in {
        "PKT": {
            "len": "frame.len",
            "caplen": "frame.cap_len",
            "timestamp": "frame.time",
            "interface": "frame.interface_name",
            "srcMAC": "eth.src",
            "destMAC": "eth.dst",
            "ethertype": "eth.type vlan.etype",
            "vlan": "vlan.id",
        },
        "IP": {
            "ipversion": "ip.version",
            "srcIP": "ip.src ip.src_host",
            "destIP": "ip.dst ip.dst_host",
            "protocol": "ip.proto",
            "ttl": "ip.ttl",
            "tos": "ip.dsfield ip.tos",
            "dscp": "ip.dsfield.dscp",
            "ecn": "ip.dsfield.ecn",
            "total_length": "ip.len",
            "header_length": "ip.hdr_len",
            "id": "ip.id",
            "offset": "ip.frag_offset",
            "more_fragments": "ip.flags.mf",
            "dont_fragment": "ip.flags.df",
        },
        "IPV6": {
            "ipversion": "ipv6.version",
            "srcIP": "ipv6.src ipv6.src_host",
            "destIP": "ipv6.dst ipv6.dst_host",
            "ttl": "ipv6.hlim",
            "tos": "ipv6.tclass",
            "dscp": "ipv6.tclass.dscp",
            "ecn": "ipv6.tclass.ecn",
            "flow_label": "ipv6.flow",
        },
        "TCP": {
            "srcPort": "tcp.srcport",
            "destPort": "tcp.dstport",
            "sequence_number": "tcp.seq_raw",
            "ack_number": "tcp.ack_raw",
            "flags": "tcp.flags",
            "FIN": "tcp.flags.fin",
            "SYN": "tcp.flags.syn",
            "RST": "tcp.flags.reset",
            "PSH": "tcp.flags.push",
            "ACK": "tcp.flags.ack",
            "URG": "tcp.flags.urg",
            "ECE": "tcp.flags.ece",
            "CWR": "tcp.flags.cwr",
            "window": "tcp.window_size_value",
            "data_length": "tcp.len",
            "TCP_data": "tcp.payload",
        },
        "UDP": {
            "srcPort": "udp.srcport",
            "destPort": "udp.dstport",
            "udp_length": "udp.length",
            "UDP_data": "udp.payload",
        },
        "ICMP": {
            "type": "icmp.type",
            "code": "icmp.code",
            "icmp_id": "icmp.ident",
            "icmp_seq": "icmp.seq",
        },
        "ICMPV6": {"type": "icmpv6.type", "code": "icmpv6.code"},
        "ARP": {
            "op": "arp.opcode",
            "senderIP": "arp.src.proto_ipv4",
            "senderMAC": "arp.src.hw_mac",
            "targetIP": "arp.dst.proto_ipv4",
            "targetMAC": "arp.dst.hw_mac",
        },
        "DNS": {
            "qname": "dns.qry.name",
            "qtype": "dns.qry.type",
            "qclass": "dns.qry.class",
            "query_id": "dns.id",
            "opcode": "dns.flags.opcode",
            "response": "dns.flags.response",
            "rcode": "dns.flags.rcode",
            "authoritative": "dns.flags.authoritative",
            "truncated": "dns.flags.truncated",
            "answers": "dns.count.answers",
        },
        "HTTP": {"method": "http.request.method", "host": "http.host"},
        "TLS": {
            "server_name": "tls.handshake.extensions_server_name "
            "ssl.handshake.extensions_server_name"
        },
    }.items()
    for field, spellings in names.items()
    for name in spellings.split()
}
"""Fields of Wireshark's display filters: the protocol whose packets have them, and the field.

Of other packets they are NULL, as in Wireshark. ``ip.src`` is the source of either IP version.
"""

EITHER: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("host", "net", "ip", "addr", "address", "ip.addr"), ("srcIP", "destIP")),
    "ip.host": ("srcIP", "destIP"),
    "ipv6.addr": ("ipv6.src", "ipv6.dst"),
    "port": ("srcPort", "destPort"),
    "tcp.port": ("tcp.srcport", "tcp.dstport"),
    "udp.port": ("udp.srcport", "udp.dstport"),
    **dict.fromkeys(("mac", "ether", "eth.addr"), ("srcMAC", "destMAC")),
}
"""Names of two fields at once, in lower case: a comparison with them holds for either field."""

INSTEAD: dict[str, str] = {
    **dict.fromkeys(
        ("packets", "pkts", "pkt", "ipkt"), "1; a row is one packet, so count(*) counts"
    ),
    "tcp.seq": "sequence_number; it is absolute, not relative to the first of the connection",
    "tcp.ack": "ack_number; it is absolute, not relative to the first of the connection",
    "tcp.window_size": "window; it is as sent, without window scaling",
    "tcp.stream": "community_id(protocol, srcIP, destIP, srcPort, destPort); it identifies a flow",
    "ipv6.nxt": "protocol; it is the header behind extension headers",
    "ipv6.plen": "total_length - 40",
    "http.request.uri": "http_path(data); it leaves out the query string",
    "http.request.full_uri": "http_host(data) || http_path(data); it leaves out the query string",
    "frame.time_epoch": "time; it counts whole seconds since 1970, and time_ns nanoseconds",
    "dns.a": "dns_address(data); it is the first address of a response",
    "dns.aaaa": "dns_address(data); it is the first address of a response",
    "tcp": "protocol = 'tcp'",
    "udp": "protocol = 'udp'",
    "sctp": "protocol = 'sctp'",
    "icmp": "protocol IN ('icmp', 'ipv6-icmp')",
    **dict.fromkeys(("icmp6", "icmpv6"), "protocol = 'ipv6-icmp'"),
    "ip4": "ipversion = 4",
    **dict.fromkeys(("ip6", "ipv6"), "ipversion = 6"),
    "dns": "(srcPort = 53 OR destPort = 53); FROM DNS reads its packets and their names",
}
"""What to write for a name that is not one field, up to the semicolon; then why."""


def either_field(name: str) -> tuple[str, str] | None:
    """Return the two names for which ``host`` or ``tcp.port`` stands, None for any other name."""
    return EITHER.get(name.lower())
