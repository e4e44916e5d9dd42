"""Filters of tcpdump inside a query, and the conditions that they are in GSQL."""

from __future__ import annotations

import re

from gscope.records import dataclass

_PHRASE = re.compile(
    r"""
    (?:(?P<carrier>ip6|ip|tcp|udp|icmp6|icmp|sctp)\s+)?
    (?:(?P<way>src|dst)\s+)?
    (?:(?P<kind>host|net|portrange|port|proto|vlan|less|greater)\s+)?
    '?(?P<value>[0-9a-fA-F]*:[0-9a-fA-F:.]+(?:/[0-9]+)?|[0-9]+(?:\.[0-9]+){3}(?:/[0-9]+)?
       |[0-9]+(?:-[0-9]+)?|[A-Za-z][\w-]*)'?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WORDS = frozenset(
    {"ip6", "ip", "tcp", "udp", "icmp6", "icmp", "sctp", "src", "dst", "host", "net", "port"}
    | {"portrange", "proto", "vlan", "less", "greater"}
)
_IS_A = {
    "ip": "ipversion = 4",
    "ip6": "ipversion = 6",
    "tcp": "protocol = 'tcp'",
    "udp": "protocol = 'udp'",
    "icmp": "protocol = 'icmp'",
    "icmp6": "protocol = 'ipv6-icmp'",
    "sctp": "protocol = 'sctp'",
}
_SERVICES = {
    "ftp": 21,
    "ssh": 22,
    "telnet": 23,
    "smtp": 25,
    "domain": 53,
    "dns": 53,
    "tftp": 69,
    "http": 80,
    "pop3": 110,
    "ntp": 123,
    "imap": 143,
    "snmp": 161,
    "https": 443,
    "syslog": 514,
}


@dataclass(frozen=True, slots=True)
class BpfPhrase:
    """A filter of tcpdump in the text of a query.

    Attributes:
        start: the offset at which it begins.
        text: the filter as written.
        condition: what it is in GSQL.
    """

    start: int
    text: str
    condition: str


def is_bpf_word(word: str) -> bool:
    """Return whether a filter of tcpdump may begin with ``word``."""
    return word.lower() in _WORDS


def find_phrase(text: str, start: int) -> BpfPhrase | None:
    """Return the filter that begins at the offset ``start``, None if there is none."""
    found = _PHRASE.match(text, start)
    if not found or not (found["kind"] or found["way"] or found["carrier"]):
        return None
    condition = _condition(found)
    if not condition:
        return None
    carrier = _IS_A.get((found["carrier"] or "").lower())
    whole = f"({carrier} AND {condition})" if carrier else condition
    return BpfPhrase(start, found[0], whole)


def _condition(found: re.Match[str]) -> str:
    kind, value = (found["kind"] or "").lower(), found["value"]
    way = (found["way"] or "").lower()
    is_address = "." in value or ":" in value
    if kind in {"", "host", "net"} and is_address:
        test = "in_net[{}, '%s']" if "/" in value else "{} = '%s'"
        return _sides(test % value, way, "IP")
    if kind == "port":
        number = _SERVICES.get(value.lower(), value)
        return _sides(f"{{}} = {number}", way, "Port") if str(number).isdigit() else ""
    if kind == "portrange" and "-" in value:
        low, high = value.split("-")
        return _sides(f"{{}} BETWEEN {low} AND {high}", way, "Port")
    if kind == "proto":
        return f"protocol = {value}" if value.isdigit() else f"protocol = '{value.lower()}'"
    if not value.isdigit():
        return ""
    plain = {"vlan": "vlan = {}", "less": "len <= {}", "greater": "len >= {}"}
    return plain[kind].format(value) if kind in plain else ""


def _sides(test: str, way: str, what: str) -> str:
    source, target = test.format(f"src{what}"), test.format(f"dest{what}")
    return {"src": source, "dst": target}.get(way, f"({source} OR {target})")
