"""What the source of flow records makes of datagrams, as plain values."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from tests.capture.sources.flows.collector import MALFORMED, WITHOUT_TEMPLATE
from tests.capture.sources.flows.exports import capture_of, udp_packet

from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.dissector.flow import flow_values
from gscope.capture.packet.flow.layout import LINKTYPE_FLOW
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.flows.source import FlowSource
from gscope.queries.catalog.scalar.addresses import format_ip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tests.capture.sources.flows.collector import Record

    from gscope.capture.sources.block import Block

ADDRESSES = ("srcIP", "destIP", "next_hop", "exporter")
ODD = {
    Reason.FLOW_MALFORMED: MALFORMED,
    Reason.FLOW_WITHOUT_TEMPLATE: WITHOUT_TEMPLATE,
}


def decoded(folder: Path, datagrams: Iterable[bytes]) -> tuple[list[Record | str], FlowSource]:
    """The records in datagrams of one exporter, and the source, which has ended."""
    return of_packets(folder, map(udp_packet, datagrams))


def of_packets(
    folder: Path, packets: Iterable[bytes], block_bytes: int = 1 << 19
) -> tuple[list[Record | str], FlowSource]:
    """The records among packets without a link layer, and the source, which has ended."""
    path = folder / "exports.pcap"
    path.write_bytes(capture_of(packets))
    source = FlowSource(open_source(str(path), block_bytes=block_bytes))
    found: list[Record | str] = []
    while (block := source.next_block()) is not None:
        found += records_in(block)
    source.close()
    return found, source


def records_in(block: Block) -> Iterator[Record | str]:
    for n in range(block.count):
        assert block.linktype[n] == LINKTYPE_FLOW
        begin = int(block.offset[n])
        values, reason = flow_values(block.data[begin : begin + int(block.caplen[n])].tobytes())
        yield ODD[reason] if reason is not Reason.NONE else _plain(values)


def _plain(values: dict[str, int | None]) -> Record:
    record: Record = {}
    for name, value in values.items():
        bare = name.removeprefix("flow.")
        if value is not None:
            record[bare] = ip_address(format_ip(value)) if bare in ADDRESSES else value
    return record
