"""Runs the decoding kernels over single packets and reads every field through its snippets."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.capture.lfta.codegen.generate import PREAMBLE
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.fields import FIELDS, INNER, FieldKind, bindings
from gscope.capture.packet.layers import PacketIndex, locate
from gscope.capture.packet.record import RECORD_BYTES
from gscope.capture.packet.tunnels import locate_inner
from gscope.capture.packet.workspace import SLOTS, WORKSPACE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from gscope.capture.packet.fields import Code, PacketFieldCode

PADDING = 64


@dataclass(frozen=True, slots=True)
class RawPacket:
    linktype: int
    data: bytes
    wirelen: int
    time_ns: int


def _code_lines(code: Code | None, slot: int, indent: str) -> list[str]:
    if code is None:
        return [f"{indent}null = True"]
    return [
        f"{indent}null = {code.null or 'False'}",
        f"{indent}if not null:",
        *(f"{indent}    st64(out + {8 * (slot + k)}, {v})" for k, v in enumerate(code.value)),
    ]


def _field_lines(field: PacketFieldCode, slot: int) -> list[str]:
    lines = [f"    if {field.member or 'True'}:"]
    if field.is_versioned:
        version = f"{INNER}version" if field.is_inner else "version"
        lines.append(f"        if {version} == 4:")
        lines += _code_lines(field.v4, slot, " " * 12)
        lines.append("        else:")
        lines += _code_lines(field.v6, slot, " " * 12)
    else:
        lines += _code_lines(field.v4, slot, " " * 8)
    lines += ["    else:", "        null = True", f"    st64(out + {8 * (slot + 2)}, null)"]
    return lines


def _reader_source() -> str:
    """A module of one kernel for each dozen of fields: numba compiles small functions faster."""
    numbered = list(enumerate(FIELDS.values()))
    parts = [numbered[begin : begin + 12] for begin in range(0, len(numbered), 12)]
    lines = [PREAMBLE]
    arguments = "record, inner_record, base, caplen, wirelen, time_ns, linktype, out"
    for number, part in enumerate(parts):
        body = [line for slot, field in part for line in _field_lines(field, 3 * slot)]
        assignments = [f"    {name} = {expression}" for name, expression in bindings(body)]
        lines += ["@kernel", f"def read_{number}({arguments}):", *assignments, *body]
    lines += [f"READERS = ({', '.join(f'read_{number}' for number in range(len(parts)))},)", ""]
    return "\n".join(lines)


def load_kernels(prefix: str, source: str) -> ModuleType:
    """A module of kernels, from a file, because only those of files are kept as compiled."""
    name = f"{prefix}_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    path = Path(__file__).parents[3] / ".cache" / f"{name}.py"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(source)
        draft.replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_READERS: tuple[Callable[..., None], ...] = load_kernels("field_reader", _reader_source()).READERS


def read_packets(
    packets: list[RawPacket], *, gap: bytes = b""
) -> list[tuple[dict[str, int | bytes | None], Reason]]:
    """Return all fields and the reason of each packet.

    ``gap`` stands behind each packet in memory.
    """
    return [
        read
        for begin in range(0, len(packets), SLOTS)
        for read in _read_batch(packets[begin : begin + SLOTS], gap)
    ]


def _read_batch(
    packets: list[RawPacket], gap: bytes
) -> list[tuple[dict[str, int | bytes | None], Reason]]:
    offsets = np.zeros(len(packets), np.int64)
    data = bytearray()
    for i, packet in enumerate(packets):
        offsets[i] = len(data)
        data += packet.data + gap
    buffer = np.frombuffer(bytes(data) + bytes(PADDING), np.uint8).copy()
    caplens = np.array([len(p.data) for p in packets], np.int32)
    wirelens = np.array([p.wirelen for p in packets], np.int32)
    linktypes = np.array([p.linktype for p in packets], np.int32)
    records = np.zeros(RECORD_BYTES * max(1, len(packets)), np.uint8)
    workspace = np.zeros(WORKSPACE_BYTES, np.uint8)
    address, first_record = buffer.ctypes.data, records.ctypes.data
    # Expanded packets are in the workspace.
    areas = ((address, buffer), (workspace.ctypes.data, workspace))
    locate(
        address,
        PacketIndex(
            offsets.ctypes.data,
            caplens.ctypes.data,
            wirelens.ctypes.data,
            linktypes.ctypes.data,
        ),
        0,
        len(packets),
        first_record,
        workspace.ctypes.data,
    )
    out = np.zeros(3 * len(FIELDS), np.int64)
    inner = np.zeros(RECORD_BYTES, np.uint8)
    inner_record, values = inner.ctypes.data, out.ctypes.data
    found = []
    for i, packet in enumerate(packets):
        record = first_record + RECORD_BYTES * i
        base = address + int(offsets[i])
        locate_inner(record, inner_record)
        sizes = (len(packet.data), packet.wirelen, packet.time_ns, packet.linktype)
        for read in _READERS:
            read(record, inner_record, base, *sizes, values)
        info = int(records[RECORD_BYTES * i + 24 :][:8].view(np.int64)[0])
        slots = out.tolist()
        fields = {
            field.name: _value(field, slots[3 * n : 3 * n + 3], areas)
            for n, field in enumerate(FIELDS.values())
        }
        found.append((fields, Reason((info >> 48) & 255)))
    return found


def _value(
    field: PacketFieldCode, slots: list[int], areas: tuple[tuple[int, np.ndarray[Any, Any]], ...]
) -> int | bytes | None:
    first, second, null = slots
    if null:
        return None
    if field.kind is FieldKind.IP:
        return (first % 2**64) << 64 | second % 2**64
    if field.kind is FieldKind.BYTES:
        assert second >= 0
        offsets = [(first - begin, area) for begin, area in areas]
        at, area = next((at, area) for at, area in offsets if 0 <= at <= area.size - second)
        return area[at : at + second].tobytes()
    return first
