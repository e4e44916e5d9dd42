"""For any bytes, a function quickly returns a value, or NULL and a count."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.functions.application import READERS, read
from gscope.engine.functions.base import Undecodable
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.types import GsqlType

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

CASES: list[tuple[str, bytes, object, bool]] = [
    ("dns_qname", DNS, b"www.example.com", True),
    ("dns_qname", DNS_HEADER + b"\x00\x00\x02\x00\x01", b".", True),
    ("dns_qname", DNS_HEADER + b"\x02a\xff\x01\x0a\x00\x00\x02\x00\x01", b"a\xff.\n", True),
    ("dns_qname", len(DNS).to_bytes(2) + DNS, b"www.example.com", True),
    ("dns_qname", DNS[:20], None, False),
    ("dns_qname", DNS_HEADER + b"\xc0\x0c", None, False),
    ("dns_qname", DNS_HEADER + b"\x3f" + b"a" * 63 * 5, None, False),
    ("dns_qname", DNS_HEADER + b"\x01a" * 200 + b"\x00", None, False),
    ("dns_qname", b"no message of the kind", None, False),
    ("dns_qname", b"", None, True),
    ("dns_qtype", DNS, 28, True),
    ("dns_qtype", DNS[:-3], None, False),
    ("dns_rcode", DNS, None, True),
    ("dns_rcode", b"\x12\x34\x81\x83" + DNS[4:], 3, True),
    ("dns_rcode", b"\x12\x34\x81\x83" + DNS[4:20], 3, True),
    ("dns_is_response", DNS, False, True),
    ("dns_id", DNS, 0x1234, True),
    ("dns_id", len(DNS).to_bytes(2) + DNS, 0x1234, True),
    ("dns_id", DNS[:11], None, False),
    ("dns_opcode", b"\x12\x34\x28\x00" + DNS[4:], 5, True),
    ("dns_qclass", DNS, 1, True),
    ("dns_qclass", DNS[:-1], None, False),
    ("dns_authoritative", DNS, None, True),
    ("dns_authoritative", b"\x12\x34\x84\x00" + DNS[4:], True, True),
    ("dns_truncated", b"\x12\x34\x83\x00" + DNS[4:], True, True),
    ("dns_address", DNS, None, True),
    ("dns_address", ANSWER, 0xFFFF0A000001, True),
    ("dns_address", ANSWER[:-1], None, False),
    ("dns_address", ANSWER.replace(b"\x00\x04\x0a", b"\x00\x05\x0a"), None, False),
    ("dns_address", ANSWER[:33] + b"\x80" + ANSWER[34:], None, False),
    ("dns_answers", b"\x12\x34\x81\x80\x00\x01\x00\x07" + DNS[8:], 7, True),
    ("http_host", HTTP, b"www.example.com", True),
    ("http_host", b"GET http://User@A.b:81/x HTTP/1.1\r\n\r\n", b"a.b", True),
    ("http_host", b"GET / HTTP/1.0\r\n\r\nHost: late\r\n", None, True),
    ("http_host", b"GET / HTTP/1.1\r\nAccept: */*\r\n", None, False),
    ("http_host", b"GET / HTTP/1.1\nhost:[2001:db8::1]:80\n\n", b"[2001:db8::1]", True),
    ("http_host", b"HTTP/1.1 200 OK\r\nHost: x\r\n\r\n", None, True),
    ("http_method", b"POST /cut", b"POST", True),
    ("http_method", b"SSH-2.0-x\r\n", None, False),
    ("http_path", HTTP, b"/a/b", True),
    ("http_path", b"GET /a?cut", b"/a", True),
    ("http_path", b"GET /cut", None, False),
    ("http_path", b"OPTIONS * HTTP/1.1\r\n\r\n", b"*", True),
    ("http_path", b"CONNECT a.b:443 HTTP/1.1\r\n\r\n", None, True),
    ("http_path", b"GET http://a.b HTTP/1.1\r\n\r\n", b"/", True),
    ("tls_sni", TLS, b"example.org", True),
    ("tls_sni", TLS[:-3], None, False),
    ("tls_sni", b"\x14\x03\x03\x00\x01\x01" + TLS, b"example.org", True),
    ("tls_sni", b"\x17\x03\x03\x00\x05hello", None, True),
    ("tls_sni", b"GET / HTTP/1.1\r\n\r\n", None, False),
]


@pytest.mark.parametrize(("function", "payload", "value", "is_readable"), CASES)
def test_a_payload_reports_this(
    function: str, payload: bytes, value: object, is_readable: bool
) -> None:
    assert read(function, payload) == (value, is_readable)


def test_every_function_without_a_meaning_in_the_catalog_has_a_reader() -> None:
    assert set(READERS) == {entry.name for entry in FUNCTIONS.values() if entry.is_high_only}


def test_a_hello_in_two_records_is_one_hello() -> None:
    parts = (_HANDSHAKE[:20], _HANDSHAKE[20:])
    payload = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2) + part for part in parts)
    assert read("tls_sni", payload) == (b"example.org", True)


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
        value, is_readable = read(function, payload)
        assert value is None or isinstance(value, KINDS[_result(function)])
        assert is_readable or value is None


@given(damaged())
def test_what_a_reader_raises_it_means_to(payload: bytes) -> None:
    """``read`` survives any error, but errors of a library must be expected ones."""
    for reader in READERS.values():
        if payload:
            with suppress(Undecodable):
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
        with suppress(Undecodable):
            reader(payload)
        assert time.thread_time() - began < LONGEST_S


def test_no_more_bytes_are_read_than_the_catalog_says() -> None:
    padding = b"X-Padding: " + b"x" * 1500 + b"\r\n"
    late = HTTP.replace(b"Host", padding + b"Host")
    assert read("http_host", late) == (None, False)


def _result(function: str) -> GsqlType:
    result = FUNCTIONS[function].result
    assert result is not None
    return result
