"""Every name of another tool in the tables has the meaning, or the remedy, that they promise."""

from __future__ import annotations

import pytest
from tests.newcomer.one_liners import CONTEXT, followed, refusal

from gscope.queries.analysis.names.foreign_inputs import _FLOWS, _PORTS, _SELECTIONS
from gscope.queries.catalog.application_protocols import APPLICATION_PROTOCOLS
from gscope.queries.catalog.field_names import EITHER, INSTEAD, SYNONYMS, WIRESHARK
from gscope.queries.catalog.protocols import PROTOCOL_SYNONYMS, PROTOCOLS
from gscope.queries.compile import QueryText, compile_queries

KNOWN = {**PROTOCOLS, **APPLICATION_PROTOCOLS}
TRANSPORTS = ("TCP", "UDP", "ICMP", "ARP")


def columns(text: str) -> str:
    """The plan of a query; equal for queries that mean the same."""
    compiled = compile_queries([QueryText(text, "query")], CONTEXT)
    return repr(compiled.stages[-1][1].queries[0].root)


def test_there_are_sixty_names_of_wireshark() -> None:
    assert len(WIRESHARK) >= 60


@pytest.mark.parametrize("synonym", SYNONYMS)
def test_a_synonym_means_the_field(synonym: str) -> None:
    field = SYNONYMS[synonym]
    having = [name for name, protocol in KNOWN.items() if protocol.field(field)]
    assert having
    for protocol in having:
        if KNOWN[protocol].field(synonym) is None:
            written = columns(f"SELECT {synonym} AS x FROM {protocol}")
            assert written == columns(f"SELECT {field} AS x FROM {protocol}")


@pytest.mark.parametrize("name", WIRESHARK)
def test_a_name_of_wireshark_means_the_field_of_its_packets(name: str) -> None:
    protocol, field = WIRESHARK[name]
    own = {"ICMPV6": "ICMP"}.get(protocol, protocol)
    written = columns(f"SELECT {name} AS x FROM {own}")
    if protocol != "ICMPV6":
        assert written == columns(f"SELECT {field} AS x FROM {own}")


@pytest.mark.parametrize("name", WIRESHARK)
def test_no_packet_of_another_protocol_has_it_in_silence(name: str) -> None:
    """Of packets that never have the field, the name is an error; of others it may be NULL."""
    protocol, _ = WIRESHARK[name]
    base = {"ICMPV6": "ICMP", "IPV6": "IP", "DNS": "UDP", "HTTP": "TCP", "TLS": "TCP"}
    home = base.get(protocol, protocol)
    for other in TRANSPORTS:
        is_below = home in {"PKT", other} or (home == "IP" and other != "ARP")
        is_below |= protocol == "DNS" and other == "TCP"
        error = refusal(f"SELECT {name} AS x FROM {other}")
        assert (error is None) == is_below, f"{name} FROM {other}"


@pytest.mark.parametrize("name", EITHER)
def test_a_name_of_two_fields_is_a_condition_on_either(name: str) -> None:
    one, other = EITHER[name]
    value = "80" if "port" in name else "'aa:bb:cc:dd:ee:ff'" if "MAC" in one else "'10.0.0.1'"
    value = "'::1'" if "ipv6" in name else value
    eth = "eth" in one or "MAC" in one
    value = "'aa:bb:cc:dd:ee:ff'" if eth else value
    for operator, word in (("=", "OR"), ("<>", "AND")):
        written = columns(f"SELECT len FROM IP WHERE {name} {operator} {value}")
        both = f"{one} {operator} {value} {word} {other} {operator} {value}"
        assert written == columns(f"SELECT len FROM IP WHERE {both}")
    among = columns(f"SELECT len FROM IP WHERE {name} IN ({value})")
    assert among == columns(f"SELECT len FROM IP WHERE {one} IN ({value}) OR {other} IN ({value})")
    error = refusal(f"SELECT {name} FROM IP")
    assert error is not None
    assert error.remedy.startswith(f"write {one} or {other}")


@pytest.mark.parametrize("name", INSTEAD)
def test_what_to_write_instead_of_a_name_compiles(name: str) -> None:
    protocol = name.partition(".")[0].upper()
    text = f"SELECT {name} FROM {protocol if protocol in KNOWN and '.' in name else 'IP'}"
    _, hints = followed(text)
    assert hints == 1


@pytest.mark.parametrize(
    "name",
    [
        *sorted(_FLOWS),
        *sorted(_PORTS),
        *sorted(_SELECTIONS),
        "eth0",
        "any",
        "x.pcap",
        "'a.pcapng.gz'",
    ],
)
def test_what_to_write_instead_of_an_input_compiles(name: str) -> None:
    _, hints = followed(f"SELECT count(*) FROM {name}")
    assert hints == 1
    _, hints = (
        followed(f"SELECT count(*) FROM {name} WHERE len > 3") if name not in _FLOWS else (0, 1)
    )
    assert hints == 1


@pytest.mark.parametrize("name", PROTOCOL_SYNONYMS)
def test_a_synonym_of_a_protocol_reads_its_packets(name: str) -> None:
    written = columns(f"SELECT len FROM {name.upper()}")
    assert written == columns(f"SELECT len FROM {PROTOCOL_SYNONYMS[name]}")
    own = f"Query {name}: SELECT time, caplen AS c FROM UDP; SELECT c FROM {name}"
    assert refusal(own) is None


@pytest.mark.parametrize("name", APPLICATION_PROTOCOLS)
def test_files_may_use_the_names_of_application_protocols(name: str) -> None:
    assert refusal(f"Query {name}: SELECT time, caplen AS c FROM UDP; SELECT c FROM {name}") is None
    assert refusal(f"PROTOCOL {name} (UDP) {{ twice = len * 2; }} SELECT twice FROM {name}") is None


@pytest.mark.parametrize(
    ("written", "condition"),
    [
        ("host 10.0.0.1", "srcIP = '10.0.0.1' OR destIP = '10.0.0.1'"),
        ("src host 10.0.0.1", "srcIP = '10.0.0.1'"),
        ("dst 10.0.0.1", "destIP = '10.0.0.1'"),
        ("src net 10.0.0.0/8", "in_net[srcIP, '10.0.0.0/8']"),
        ("net 2001:db8::/32", "srcIP = '2001:db8::/32' OR destIP = '2001:db8::/32'"),
        ("tcp port 80", "protocol = 6 AND (srcPort = 80 OR destPort = 80)"),
        ("udp dst port domain", "protocol = 17 AND destPort = 53"),
        ("dst port https and not src host 10.0.0.1", "destPort = 443 AND NOT srcIP = '10.0.0.1'"),
        ("portrange 1-1023", "srcPort BETWEEN 1 AND 1023 OR destPort BETWEEN 1 AND 1023"),
        ("ip proto 47", "ipversion = 4 AND protocol = 47"),
        ("vlan 100 and less 128", "vlan = 100 AND len <= 128"),
        ("tcp and port 80", "protocol = 6 AND (srcPort = 80 OR destPort = 80)"),
        ("ip.src==10.0.0.1&&!(tcp.dstport==22)", "srcIP = '10.0.0.1' AND NOT tcp.dstport = 22"),
        (
            "src_ip = fe80::1 or src_mac = 02:00:00:00:00:01",
            "srcIP = 'fe80::1' OR srcMAC = '02:00:00:00:00:01'",
        ),
        ("src_ip like '10.%'", "in_net[srcIP, '10.0.0.0/8']"),
        ("src_ip like '10.1.2.%'", "in_net[srcIP, '10.1.2.0/24']"),
        ("src_ip not like '10.%'", "NOT in_net[srcIP, '10.0.0.0/8']"),
        ("src_ip like '10.1%'", "STRING(srcIP) LIKE '10.1%'"),
    ],
)
def test_a_condition_of_another_tool_means_what_it_means_there(
    written: str, condition: str
) -> None:
    text, _ = followed(f"SELECT len FROM IP WHERE {written}")
    assert columns(text) == columns(f"SELECT len FROM IP WHERE {condition}")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("SELECT len FROM UDP WHERE syn", "write FROM TCP"),
        ("SELECT len FROM ARP WHERE src_ip = 10.0.0.1", "write senderIP"),
        ("SELECT tcp.len FROM tcp", "write data_length; or len for"),
        ("SELECT ip.len FROM ip", "write total_length; or len for"),
        ("SELECT udp.length FROM tcp", "write FROM UDP"),
        ("SELECT bytes*8 AS bits, sum(len) AS bytes FROM IP GROUP BY ALL", "named further on"),
    ],
)
def test_a_name_that_may_mislead_is_refused(text: str, remedy: str) -> None:
    error = refusal(text)
    assert error is not None
    assert remedy in error.remedy
