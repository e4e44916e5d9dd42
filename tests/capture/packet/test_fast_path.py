"""Plain packets: what is known of them by their place is what their record would say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.capture.packet.kernel_reader import PADDING, RawPacket, load_kernels
from tests.capture.packet.packet_forge import packets
from tests.capture.packet.raw_captures import read_capture
from tests.capture.packet.test_decoding import BATCHES
from tests.support.requirements import captures

from gscope.capture.lfta.codegen.generate import PREAMBLE
from gscope.capture.packet.fields import PLAIN_VARIABLES, VARIABLES, bindings
from gscope.capture.packet.layers import PacketIndex, locate
from gscope.capture.packet.record import RECORD_BYTES
from gscope.capture.packet.workspace import WORKSPACE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = tuple(PLAIN_VARIABLES[4])
ETHERNET = 1


def _source() -> str:
    lines = [PREAMBLE]
    stores = [f"    st64(out + {8 * n}, {name})" for n, name in enumerate(NAMES)]
    for version in (4, 6, None):
        assignments = [f"    {name} = {code}" for name, code in bindings(NAMES, version)]
        head = f"def read_{version}(record, base, caplen, out):"
        lines += ["@kernel", head, f"    linktype = {ETHERNET}", *assignments, *stores]
    for version in (4, 6):
        lines += ["@kernel", f"def is_plain_{version}(base, caplen):"]
        lines += [f"    return is_plain_ipv{version}(base, caplen)"]
    return "\n".join([*lines, ""])


KERNELS = load_kernels("plain_reader", _source())


def plain_packets(sent: Iterable[RawPacket]) -> list[int]:
    """The versions of those that are plain, each compared with its record."""
    found = []
    record = np.zeros(RECORD_BYTES, np.uint8)
    zeros = np.zeros(1, np.int64)
    workspace = np.zeros(WORKSPACE_BYTES, np.uint8)
    by_place, by_record = np.zeros((2, len(NAMES)), np.int64)
    for packet in sent:
        if packet.linktype != ETHERNET:
            continue
        data = np.frombuffer(packet.data + bytes(PADDING), np.uint8)
        place = data.ctypes.data, len(packet.data)
        for version in (4, 6):
            if not getattr(KERNELS, f"is_plain_{version}")(*place):
                continue
            caplen, wirelen, linktype = np.array(
                [place[1], packet.wirelen, ETHERNET], np.int32
            ).reshape(3, 1)
            locate(
                data.ctypes.data,
                PacketIndex(
                    zeros.ctypes.data,
                    caplen.ctypes.data,
                    wirelen.ctypes.data,
                    linktype.ctypes.data,
                ),
                0,
                1,
                record.ctypes.data,
                workspace.ctypes.data,
            )
            getattr(KERNELS, f"read_{version}")(0, *place, by_place.ctypes.data)
            KERNELS.read_None(record.ctypes.data, *place, by_record.ctypes.data)
            assert dict(zip(NAMES, by_place, strict=True)) == dict(
                zip(NAMES, by_record, strict=True)
            )
            found.append(version)
    return found


def test_plain_packets_of_the_captures_are_as_their_records_say() -> None:
    found = [version for path in captures()[::2] for version in plain_packets(read_capture(path))]
    assert found.count(4) > 1000
    assert found.count(6) > 10


@BATCHES
@given(st.lists(packets(), min_size=1, max_size=20))
def test_plain_packets_among_damaged_ones_are_as_their_records_say(raw: list[RawPacket]) -> None:
    plain_packets(raw)


def test_everything_a_record_holds_is_known_of_plain_packets() -> None:
    words = {"info", "link"}
    assert set(PLAIN_VARIABLES[4]) == set(PLAIN_VARIABLES[6]) == set(VARIABLES) - words
