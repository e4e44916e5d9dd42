"""Application-layer functions agree with tshark (``tshark_rows.tsv``: TShark 4, no reassembly)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import dpkt
import pytest
from tests.support.requirements import CAPTURES, needs_captures

from gscope.engine.functions.application import read

FIELDS = {
    "dns": ("dns_qname", "dns_qtype", "dns_rcode", "dns_answers", "dns_is_response"),
    "http": ("http_host", "http_method", "http_path"),
    "tls": ("tls_sni",),
}
ROWS = [
    line.split("\t")
    for line in Path(__file__).with_name("tshark_rows.tsv").read_text("utf-8").splitlines()
]

pytestmark = needs_captures


@cache
def payloads(capture: str) -> dict[int, bytes]:
    """Return the TCP and UDP payloads that rows name, by frame number from 1."""
    wanted = {int(row[1]) for row in ROWS if row[0] == capture}
    with (CAPTURES / capture).open("rb") as file:
        reader = dpkt.pcap.UniversalReader(file)
        frames = {n: frame for n, (_, frame) in enumerate(reader, 1) if n in wanted}
        link = reader.datalink()
    decode = dpkt.sll.SLL if link == dpkt.pcap.DLT_LINUX_SLL else dpkt.ethernet.Ethernet
    return {number: innermost(decode(frame)) for number, frame in frames.items()}


def innermost(packet: dpkt.Packet) -> bytes:
    """Return the payload that no decoder has parsed."""
    while isinstance(packet.data, dpkt.Packet):
        packet = packet.data
    return bytes(packet.data)


def shown(function: str, payload: bytes) -> str:
    """Return a value as tshark writes it."""
    value, _ = read(function, payload)
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None else str(int(value))


def as_gscope(kind: str, values: list[str]) -> list[str]:
    """Return tshark's values with the same meaning: no port, no query, names in lower case."""
    if kind == "http":
        host, method, target = values
        return [host.lower().partition(":")[0], method, target.partition("?")[0]]
    return [values[0].lower(), *values[1:]]


@pytest.mark.parametrize("capture", sorted({row[0] for row in ROWS}))
def test_functions_read_what_tshark_reads(capture: str) -> None:
    wrong = []
    for name, frame, kind, *values in ROWS:
        if name == capture:
            payload = payloads(capture)[int(frame)]
            got = [shown(function, payload) for function in FIELDS[kind]]
            if got != as_gscope(kind, values):
                wrong.append((frame, got, values))
    assert wrong == []
