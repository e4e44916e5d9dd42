"""The slow dissector's flow records; see ``flow/layout.py``."""

from __future__ import annotations

from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.flow.layout import ADDRESS_BYTES, FLOW_FIELDS, REASON_SHIFT

FLOW_NAMES = tuple(f"flow.{field.name}" for field in FLOW_FIELDS)


def flow_values(data: bytes) -> tuple[dict[str, int | None], Reason]:
    """Return the fields of a flow record, None for those that it lacks, and its reason."""
    present = int.from_bytes(data[:8], "little")
    reason = Reason(present >> REASON_SHIFT & 255)
    values: dict[str, int | None] = {}
    for field in FLOW_FIELDS:
        part = data[field.offset : field.offset + field.width]
        if not field.is_certain and not present >> field.bit & 1:
            value = None
        elif field.width == ADDRESS_BYTES:
            value = int.from_bytes(part[:8], "little") << 64 | int.from_bytes(part[8:], "little")
        else:
            value = int.from_bytes(part, "little", signed=field.width == 8)
        values[f"flow.{field.name}"] = value
    return values, reason
