"""Kernels and dissector against each other, and both against what tshark says of the captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.capture.packet.kernel_reader import read_packets
from tests.capture.packet.packet_forge import packets
from tests.capture.packet.raw_captures import expected_flows, flows_of, read_capture
from tests.support.requirements import captures

from gscope.capture.packet.dissector.dissect import dissect
from gscope.capture.packet.fields import FIELDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.capture.packet.kernel_reader import RawPacket

    from gscope.capture.packet.decode_errors import Reason
    from gscope.capture.packet.dissector.dissect import Fields

BATCHES = settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def dissected(packet: RawPacket) -> tuple[Fields, Reason]:
    return dissect(
        packet.data,
        linktype=packet.linktype,
        wirelen=packet.wirelen,
        time_ns=packet.time_ns,
    )


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.name)
def test_every_capture_gives_the_flows_of_tshark_and_the_fields_of_the_dissector(
    path: Path,
) -> None:
    raw = read_capture(path)
    by_kernel = read_packets(raw)
    assert flows_of(fields for fields, _ in by_kernel) == expected_flows(path)
    assert by_kernel == [dissected(packet) for packet in raw]


@BATCHES
@given(st.lists(packets(), min_size=1, max_size=6))
def test_kernels_agree_with_the_dissector_on_damaged_packets(raw: list[RawPacket]) -> None:
    assert read_packets(raw) == [dissected(packet) for packet in raw]


@BATCHES
@given(st.lists(packets(), min_size=1, max_size=6), st.binary(min_size=64, max_size=96))
def test_bytes_behind_a_packet_change_nothing(raw: list[RawPacket], gap: bytes) -> None:
    assert read_packets(raw, gap=gap) == read_packets(raw, gap=bytes(len(gap)))


def test_the_dissector_knows_exactly_the_fields_of_the_kernels() -> None:
    fields, _ = dissect(b"", linktype=1, wirelen=0, time_ns=0)
    assert set(fields) == set(FIELDS)
