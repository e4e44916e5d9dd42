"""What users of other tools write after FROM: a device, a capture, a protocol by its port."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.queries.catalog.protocols import PROTOCOL_SYNONYMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.catalog.protocols import Protocol
    from gscope.queries.gsql import nodes

_CAPTURE = re.compile(r".*\.?(pcap|pcapng|cap|pcap_?gz|gz|zst|lz4)", re.IGNORECASE)
_DEVICE = re.compile(
    r"any|lo|(eth|en[osp]|wl|wlan|br|veth|docker|tun|tap|bond|ppp|wg|vmnet)[\w-]*\d[\w-]*",
    re.IGNORECASE,
)
_FLOWS = frozenset({"flows", "sessions", "netflow", "conn"})
_PORTS: dict[str, tuple[str, str]] = {
    name: (protocol, ports)
    for protocol, services in {
        "UDP": {
            "67, 68": "dhcp bootp",
            "123": "ntp",
            "161, 162": "snmp",
            "443": "quic",
            "514": "syslog",
            "5353": "mdns",
            "5355": "llmnr",
            "69": "tftp",
            "1900": "ssdp",
            "1812, 1813": "radius",
        },
        "TCP": {
            "22": "ssh",
            "25": "smtp",
            "21": "ftp",
            "23": "telnet",
            "143": "imap",
            "110": "pop pop3",
            "179": "bgp",
            "389": "ldap",
            "445": "smb smb2",
            "3306": "mysql",
            "5432": "postgres postgresql pgsql",
            "3389": "rdp",
            "6379": "redis",
        },
        "IP": {"5060": "sip", "88": "kerberos"},
    }.items()
    for ports, names in services.items()
    for name in names.split()
}
"""Protocols that are known by their port: what carries them, and the ports."""

_SELECTIONS = {
    "https": "TLS",
    "ssl": "TLS",
    "icmp6": "(SELECT * FROM ICMP WHERE ipversion = 6) AS icmp6",
    "icmpv6": "(SELECT * FROM ICMP WHERE ipversion = 6) AS icmpv6",
    "sctp": "(SELECT * FROM IP WHERE protocol = 132) AS sctp",
    "gre": "(SELECT * FROM IP WHERE protocol = 47) AS gre",
    "igmp": "(SELECT * FROM IP WHERE protocol = 2) AS igmp",
    "esp": "(SELECT * FROM IP WHERE protocol = 50) AS esp",
    "ospf": "(SELECT * FROM IP WHERE protocol = 89) AS ospf",
    "vlan": "(SELECT * FROM PKT WHERE vlan IS NOT NULL) AS tagged",
}


def synonym(name: str, protocols: Mapping[str, Protocol]) -> Protocol | None:
    """Return the protocol that other tools call ``name``, such as PKT for ``packets``."""
    return protocols.get(PROTOCOL_SYNONYMS.get(name.lower(), ""))


def input_instead(reference: nodes.NamedInput, interfaces: Sequence[str]) -> str:
    """Return the remedy for an input that is neither a query nor a protocol, "" if unknown."""
    name = reference.name
    lower = name.lower()
    prefix = f"{reference.interface}." if reference.interface in interfaces else ""
    if name in interfaces and reference.interface is None:
        return f"write {_part(name)}.IP; {name} is an interface, and IP the protocol"
    if _CAPTURE.fullmatch(name):
        full = f"{reference.interface}.{name}" if reference.interface else name
        return f"write IP; the command line names the capture: gscope replay {full} -e '…'"
    if reference.interface is None and _DEVICE.fullmatch(name):
        return f"write IP; the command line names the device: gscope run -i {name} -e '…'"
    if lower in _FLOWS:
        keys = "srcIP, destIP, protocol, srcPort, destPort"
        columns = f"{keys}, count(*) AS packets, sum(len) AS bytes"
        return (
            f"write (SELECT {columns} FROM {prefix}IP GROUP BY {keys}) AS {name}; "
            "a flow is a group of packets"
        )
    if lower in _SELECTIONS:
        return f"write {_SELECTIONS[lower]}"
    if lower in _PORTS:
        protocol, ports = _PORTS[lower]
        where = f"srcPort IN ({ports}) OR destPort IN ({ports})"
        selection = f"(SELECT * FROM {prefix}{protocol} WHERE {where}) AS {name}"
        return f"write {selection}; {name} is known by its port"
    return ""


def _part(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"'{name}'"
