"""The layout of a flow record: a packet of fixed layout with a link type of its own.

Sources of flow records decode exports (NetFlow, IPFIX) into such packets; LFTAs read their fields
at fixed offsets. Numbers are little-endian. The first word says which fields are present, one bit
each (``FlowField.bit``). In a record that stands for something that could not be decoded no bit is
set, and bits 48 to 55 hold the reason (``Reason``).
"""

from __future__ import annotations

from gscope.records import dataclass

LINKTYPE_FLOW = 1 << 16
"""Above all link types of captures, which have 16 bits."""

RECORD_BYTES = 152
"""Bytes of a record."""

REASON_SHIFT = 48

SRC_IP, DEST_IP, NEXT_HOP, EXPORTER = 8, 24, 40, 56
"""Offsets of addresses: the high half of the value, then the low half."""
FIRST, LAST, EXPORTED, PACKETS, BYTES = 72, 80, 88, 96, 104
SAMPLING, SRC_AS, DEST_AS, INPUT, OUTPUT, DOMAIN = 112, 116, 120, 124, 128, 132
SRC_PORT, DEST_PORT, VLAN = 136, 138, 140
TYPE, CODE, PROTOCOL, TOS, FLAGS, SRC_MASK, DEST_MASK, VERSION, DIRECTION = range(142, 151)

ADDRESS_BYTES = 16
"""Width of an address."""


@dataclass(frozen=True, slots=True)
class FlowField:
    """A field of a flow record.

    Attributes:
        name: its name in queries.
        offset: position in the record, in bytes.
        width: bytes of the field: 1, 2, 4, 8, or ``ADDRESS_BYTES``.
        is_certain: whether every record has it.
    """

    name: str
    offset: int
    width: int
    is_certain: bool = False

    @property
    def bit(self) -> int:
        """The number of its bit in the first word."""
        return BITS[self.offset]


FLOW_FIELDS: tuple[FlowField, ...] = (
    FlowField("sampling_interval", SAMPLING, 4, is_certain=True),
    FlowField("srcPort", SRC_PORT, 2, is_certain=True),
    FlowField("destPort", DEST_PORT, 2, is_certain=True),
    FlowField("srcIP", SRC_IP, ADDRESS_BYTES),
    FlowField("destIP", DEST_IP, ADDRESS_BYTES),
    FlowField("next_hop", NEXT_HOP, ADDRESS_BYTES),
    FlowField("exporter", EXPORTER, ADDRESS_BYTES),
    FlowField("first", FIRST, 8),
    FlowField("last", LAST, 8),
    FlowField("exported", EXPORTED, 8),
    FlowField("packets", PACKETS, 8),
    FlowField("bytes", BYTES, 8),
    FlowField("srcAS", SRC_AS, 4),
    FlowField("destAS", DEST_AS, 4),
    FlowField("input_interface", INPUT, 4),
    FlowField("output_interface", OUTPUT, 4),
    FlowField("domain", DOMAIN, 4),
    FlowField("vlan", VLAN, 2),
    FlowField("type", TYPE, 1),
    FlowField("code", CODE, 1),
    FlowField("protocol", PROTOCOL, 1),
    FlowField("tos", TOS, 1),
    FlowField("flags", FLAGS, 1),
    FlowField("src_mask", SRC_MASK, 1),
    FlowField("dest_mask", DEST_MASK, 1),
    FlowField("ipversion", VERSION, 1),
    FlowField("direction", DIRECTION, 1),
)
"""All fields; sources set the bits of those that are certain in every record."""

BITS: dict[int, int] = {field.offset: bit for bit, field in enumerate(FLOW_FIELDS)}
"""The bit of each field in the first word, by its offset."""

CERTAIN = sum(1 << bit for bit, field in enumerate(FLOW_FIELDS) if field.is_certain)
"""The bits of the fields that every record has."""
