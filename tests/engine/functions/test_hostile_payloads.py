"""For any bytes, a function quickly returns a value, or NULL and a count."""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.requirements import needs

from gscope.engine.functions.application import READERS, read
from gscope.engine.functions.base import ForeignPayload, Outcome, Undecodable
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.lookups import LOOKUPS
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from pathlib import Path

DNS_HEADER = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
DNS = DNS_HEADER + b"\x03www\x07example\x03com\x00\x00\x1c\x00\x01"
ANSWER = (
    b"\x12\x34\x81\x80\x00\x01\x00\x02\x00\x00\x00\x00"
    + DNS[12:]
    + b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x04\x01b\xc0\x10"
    + b"\x01b\xc0\x10\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x00\x00\x01"
)
"""An alias, and its IPv4 address."""

HTTP = b"GET /a/b?c=d HTTP/1.1\r\nAccept: */*\r\nHost: Www.Example.COM.:8080\r\n\r\n"
_NAME = b"\x00\x00\x00\x10\x00\x0e\x00\x00\x0bexample.org"
_HELLO = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
_EXTENSIONS = b"\x00\x17\x00\x00" + _NAME
_BODY = _HELLO + len(_EXTENSIONS).to_bytes(2) + _EXTENSIONS
_HANDSHAKE = b"\x01" + len(_BODY).to_bytes(3) + _BODY
TLS = b"\x16\x03\x01" + len(_HANDSHAKE).to_bytes(2) + _HANDSHAKE
SOUND = (DNS, ANSWER, HTTP, TLS)
KINDS = {GsqlType.STRING: bytes, GsqlType.INT: int, GsqlType.BOOL: bool, GsqlType.IP: int}
LONGEST_S = 0.25
"""The limit of CPU time for any 64 KiB; a hundredth of it is usual."""

READ, FOREIGN, DAMAGED = Outcome.READ, Outcome.FOREIGN, Outcome.DAMAGED

CASES: list[tuple[str, bytes, object, Outcome]] = [
    ("dns_qname", DNS, b"www.example.com", READ),
    ("dns_qname", DNS_HEADER + b"\x00\x00\x02\x00\x01", b".", READ),
    ("dns_qname", DNS_HEADER + b"\x02a\xff\x01\x0a\x00\x00\x02\x00\x01", b"a\xff.\n", READ),
    ("dns_qname", len(DNS).to_bytes(2) + DNS, b"www.example.com", READ),
    ("dns_qname", DNS[:20], None, DAMAGED),
    ("dns_qname", DNS_HEADER + b"\xc0\x0c", None, DAMAGED),
    ("dns_qname", DNS_HEADER + b"\x3f" + b"a" * 63 * 5, None, DAMAGED),
    ("dns_qname", DNS_HEADER + b"\x01a" * 200 + b"\x00", None, DAMAGED),
    ("dns_qname", b"no message of the kind", None, FOREIGN),
    ("dns_qname", b"", None, READ),
    ("dns_qtype", DNS, 28, READ),
    ("dns_qtype", DNS[:-3], None, DAMAGED),
    ("dns_rcode", DNS, None, READ),
    ("dns_rcode", b"\x12\x34\x81\x83" + DNS[4:], 3, READ),
    ("dns_rcode", b"\x12\x34\x81\x83" + DNS[4:20], 3, READ),
    ("dns_is_response", DNS, False, READ),
    ("dns_id", DNS, 0x1234, READ),
    ("dns_id", len(DNS).to_bytes(2) + DNS, 0x1234, READ),
    ("dns_id", DNS[:11], None, DAMAGED),
    ("dns_opcode", b"\x12\x34\x28\x00" + DNS[4:], 5, READ),
    ("dns_qclass", DNS, 1, READ),
    ("dns_qclass", DNS[:-1], None, DAMAGED),
    ("dns_authoritative", DNS, None, READ),
    ("dns_authoritative", b"\x12\x34\x84\x00" + DNS[4:], True, READ),
    ("dns_truncated", b"\x12\x34\x83\x00" + DNS[4:], True, READ),
    ("dns_address", DNS, None, READ),
    ("dns_address", ANSWER, 0xFFFF0A000001, READ),
    ("dns_address", ANSWER[:-1], None, DAMAGED),
    ("dns_address", ANSWER.replace(b"\x00\x04\x0a", b"\x00\x05\x0a"), None, DAMAGED),
    ("dns_address", ANSWER[:33] + b"\x80" + ANSWER[34:], None, DAMAGED),
    ("dns_answers", b"\x12\x34\x81\x80\x00\x01\x00\x07" + DNS[8:], 7, READ),
    ("http_host", HTTP, b"www.example.com", READ),
    ("http_host", b"GET http://User@A.b:81/x HTTP/1.1\r\n\r\n", b"a.b", READ),
    ("http_host", b"GET / HTTP/1.0\r\n\r\nHost: late\r\n", None, READ),
    ("http_host", b"GET / HTTP/1.1\r\nAccept: */*\r\n", None, DAMAGED),
    ("http_host", b"GET / HTTP/1.1\nhost:[2001:db8::1]:80\n\n", b"[2001:db8::1]", READ),
    ("http_host", b"HTTP/1.1 200 OK\r\nHost: x\r\n\r\n", None, READ),
    ("http_method", b"POST /cut", b"POST", READ),
    ("http_method", b"SSH-2.0-x\r\n", None, FOREIGN),
    ("http_path", HTTP, b"/a/b", READ),
    ("http_path", b"GET /a?cut", b"/a", READ),
    ("http_path", b"GET /cut", None, DAMAGED),
    ("http_path", b"OPTIONS * HTTP/1.1\r\n\r\n", b"*", READ),
    ("http_path", b"CONNECT a.b:443 HTTP/1.1\r\n\r\n", None, READ),
    ("http_path", b"GET http://a.b HTTP/1.1\r\n\r\n", b"/", READ),
    ("http_host", b"GET no line of a request\r\n\r\n", None, DAMAGED),
    ("http_host", b"GET", None, FOREIGN),
    ("http_path", b"HELLO", None, FOREIGN),
    ("http_host", TLS, None, FOREIGN),
    ("dns_qname", HTTP, None, FOREIGN),
    ("dns_qname", TLS, None, FOREIGN),
    ("dns_qname", bytes(40), None, FOREIGN),
    ("tls_sni", b"\x16", None, DAMAGED),
    ("tls_sni", b"\x16\x02\x00\x00\x01\x01", None, FOREIGN),
    ("tls_sni", b"\x99", None, FOREIGN),
    ("tls_sni", TLS, b"example.org", READ),
    ("tls_sni", TLS[:-3], None, DAMAGED),
    ("tls_sni", b"\x14\x03\x03\x00\x01\x01" + TLS, b"example.org", READ),
    ("tls_sni", b"\x17\x03\x03\x00\x05hello", None, READ),
    ("tls_sni", b"GET / HTTP/1.1\r\n\r\n", None, FOREIGN),
]


@pytest.mark.parametrize(("function", "payload", "value", "outcome"), CASES)
def test_a_payload_reports_this(
    function: str, payload: bytes, value: object, outcome: Outcome
) -> None:
    assert read(function, payload) == (value, outcome)


@pytest.mark.parametrize(
    ("function", "message", "port"),
    [("dns_address", ANSWER, 53), ("tls_sni", TLS, 443), ("http_host", HTTP, 80)],
)
def test_a_message_that_is_cut_off_is_never_foreign(
    function: str, message: bytes, port: int
) -> None:
    """However little of it was captured, if its first word is there."""
    least = {53: 1, 443: 1, 80: 4}[port]
    outcomes = {read(function, message[:size])[1] for size in range(least, len(message) + 1)}
    assert outcomes == {READ, DAMAGED}


@needs("tshark")
def test_damage_is_what_tshark_calls_malformed(tmp_path: Path) -> None:
    """Of a DNS answer cut at every byte, as datagrams that are whole."""
    cut = [ANSWER[:size] for size in range(12, len(ANSWER) + 1)]
    with (tmp_path / "cut.pcap").open("wb") as file:
        writer = dpkt.pcap.Writer(file, linktype=dpkt.pcap.DLT_RAW)
        for number, payload in enumerate(cut):
            datagram = dpkt.udp.UDP(sport=53, dport=9, data=payload, ulen=8 + len(payload))
            header = dpkt.ip.IP(src=bytes(4), dst=bytes(4), p=17, data=datagram)
            header.len = 28 + len(payload)
            writer.writepkt(bytes(header), ts=number)
    fields = ["-T", "fields", "-E", "separator=;", "-e", "frame.number", "-e", "_ws.malformed"]
    shown = subprocess.run(
        ["tshark", "-n", "-r", tmp_path / "cut.pcap", *fields],
        capture_output=True,
        text=True,
        check=True,
    )
    malformed = [bool(line.partition(";")[2]) for line in shown.stdout.splitlines()]
    assert [read("dns_address", payload)[1] is DAMAGED for payload in cut] == malformed


def test_every_function_without_a_meaning_in_the_catalog_has_a_reader() -> None:
    unread = {entry.name for entry in FUNCTIONS.values() if entry.is_high_only}
    assert set(READERS) == unread - set(LOOKUPS)


def test_a_hello_in_two_records_is_one_hello() -> None:
    parts = (_HANDSHAKE[:20], _HANDSHAKE[20:])
    payload = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2) + part for part in parts)
    assert read("tls_sni", payload) == (b"example.org", READ)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a valid message, truncated, with bytes changed, inserted and repeated."""
    data = bytearray(draw(st.sampled_from(SOUND)))
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=4))
    data *= draw(st.integers(1, 3))
    return bytes(data[: draw(st.integers(0, len(data)))])


@given(st.one_of(damaged(), st.binary(max_size=200)))
def test_no_bytes_make_a_function_fail(payload: bytes) -> None:
    for function in READERS:
        value, outcome = read(function, payload)
        assert value is None or isinstance(value, KINDS[_result(function)])
        assert outcome is READ or value is None


@given(damaged())
def test_what_a_reader_raises_it_means_to(payload: bytes) -> None:
    """``read`` survives any error, but errors of a library must be expected ones."""
    for reader in READERS.values():
        if payload:
            with suppress(Undecodable, ForeignPayload):
                reader(payload)


@pytest.mark.parametrize(
    "payload",
    [
        DNS_HEADER + b"\x01a" * 32_000,
        DNS_HEADER + b"\xc0\x0e" * 32_000,
        b"GET / HTTP/1.1\r\nHost:" + b" " * 65_000,
        b"GET / HTTP/1.1" + b"\r\n" * 32_000,
        b"\x16\x03\x01\x00\x00" * 13_000,
        TLS[:-20] + b"\x00\x00" * 32_000,
    ],
)
def test_long_payloads_take_no_long_time(payload: bytes) -> None:
    for reader in READERS.values():
        began = time.thread_time()
        with suppress(Undecodable, ForeignPayload):
            reader(payload)
        assert time.thread_time() - began < LONGEST_S


def test_no_more_bytes_are_read_than_the_catalog_says() -> None:
    padding = b"X-Padding: " + b"x" * 1500 + b"\r\n"
    late = HTTP.replace(b"Host", padding + b"Host")
    assert read("http_host", late) == (None, DAMAGED)


def _result(function: str) -> GsqlType:
    result = FUNCTIONS[function].result
    assert result is not None
    return result
