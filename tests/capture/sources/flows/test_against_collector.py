"""The kernels decode arbitrary and damaged exports as a slow collector in plain Python does."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.sources.flows.collector import Collector
from tests.capture.sources.flows.decoded import of_packets
from tests.capture.sources.flows.exports import (
    EXPORTER,
    fields_of,
    ipfix,
    ipfix_options,
    set_of,
    template,
    udp_packet,
    v5,
    v9,
    v9_options,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.capture.sources.flows.collector import Record

ELEMENTS = (
    *(*range(1, 18), 21, 22, 27, 28, 29, 30, 32, 34, 48, 50, 58, 60, 61, 62, 85, 86, 99),
    *(*range(139, 140), *range(150, 161), *range(176, 180), 243, 302, 305, 306, 309, 310, 600),
)
LENGTHS = st.sampled_from((0, 1, 2, 3, 4, 4, 4, 8, 8, 9, 16, 16, 65535))
SPECIFIER = st.tuples(st.sampled_from(ELEMENTS), LENGTHS)
NUMBERS = st.integers(256, 259)


@st.composite
def templates(draw: st.DrawFn, *, is_ipfix: bool) -> bytes:
    number, fields = draw(NUMBERS), draw(st.lists(SPECIFIER, max_size=9))
    if not draw(st.booleans()):
        named = [(*f, 29305) if is_ipfix and draw(st.booleans()) else f for f in fields]
        return set_of(2 if is_ipfix else 0, template(number, named), draw(st.integers(0, 3)))
    scopes = draw(st.integers(0, len(fields)))
    if is_ipfix:
        return set_of(3, ipfix_options(number, scopes, fields))
    return set_of(1, v9_options(number, fields[:scopes], fields[scopes:]))


# Small numbers, so that samplers and lengths meet.
VALUES = st.one_of(
    st.binary(max_size=120), st.lists(st.sampled_from(b"\0\0\0\1\2\4\xff"), max_size=120).map(bytes)
)


@st.composite
def exports(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        records = draw(st.lists(st.binary(min_size=48, max_size=48), min_size=1, max_size=3))
        return v5(records, interval=draw(st.integers(0, 0x3FFF)))
    is_ipfix = draw(st.booleans())
    data = st.builds(set_of, NUMBERS, VALUES)
    sets = draw(st.lists(st.one_of(templates(is_ipfix=is_ipfix), data, data), min_size=1))
    make = ipfix if is_ipfix else v9
    return make(sets, draw(st.integers(0, 50)), draw(st.integers(0, 1)))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An export of which some bytes behind the header are others."""
    data = bytearray(draw(exports()))
    begin = {5: 24, 9: 24, 10: 20}[data[1]]
    for _ in range(draw(st.integers(0, 3))):
        if len(data) > begin:
            data[draw(st.integers(begin, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exports")


@settings(max_examples=60)
@given(datagrams=st.lists(damaged(), min_size=1, max_size=6))
def test_kernels_and_collector_agree(datagrams: list[bytes], folder: Path) -> None:
    collector = Collector()
    expected: list[Record | str] = []
    for each in datagrams:
        expected += collector.take(each, EXPORTER)
    found, source = of_packets(folder, map(udp_packet, datagrams))
    assert found == expected
    assert source.stats.received_packets == len(found) + source.stats.dropped_packets


@settings(max_examples=40)
@given(payloads=st.lists(st.binary(max_size=200), max_size=5), version=st.sampled_from((5, 9, 10)))
def test_no_bytes_harm(payloads: list[bytes], version: int, folder: Path) -> None:
    """Any bytes behind a version are counted at most once for each set or record."""
    packets = [udp_packet(struct.pack(">H", version) + payload) for payload in payloads]
    found, _ = of_packets(folder, packets)
    assert len(found) <= sum(map(len, packets))


def test_the_size_of_blocks_makes_no_difference(folder: Path) -> None:
    flows = set_of(0, struct.pack(">2H", 300, 2) + fields_of([(2, 4), (1, 4)]))
    data = set_of(300, b"".join(struct.pack(">2I", n, 9 * n) for n in range(100)))
    packets = [udp_packet(v9([flows, data], n)) for n in range(200)]
    whole, _ = of_packets(folder, packets)
    assert len(whole) == 20_000
    assert of_packets(folder, packets, block_bytes=4096)[0] == whole
