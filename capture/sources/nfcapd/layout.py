"""The layout of files that nfcapd, nfpcapd and ``nfdump -w`` write: header, blocks, records.

Layout 2, which nfdump 1.7 introduced: a header, then blocks of records, and behind them *appendix*
blocks with the file's name and totals. A block has a header of its own, and its content may be
compressed. Numbers are in the byte order of the machine that wrote the file; gscope reads
little-endian files.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

MAGIC = b"\x0c\xa5"
_SWAPPED_MAGIC = MAGIC[::-1]
HEADER_BYTES = 40
BLOCK_HEADER_BYTES = 12
_LAYOUT = 2
_OLD_LAYOUT = 1
_HEADER = struct.Struct("<2sHIqBBHIqII")
_BLOCK_HEADER = struct.Struct("<IIHH")

PLAIN, LZO, BZ2, LZ4, ZSTD = range(5)
"""How the blocks of a file are compressed."""

RECORD_BLOCK = 3
"""Type of a block of records that each have a header."""
_IS_PLAIN = 1
"""Flag of a block that is not compressed although the file is."""

MAX_BLOCK_BYTES = 32 << 20
"""Largest block, stored or decompressed: nfdump's buffers have 5 or 10 MiB. A larger one is damage;
bounds the memory that a file can claim."""

EXPORTER_RECORD, OLD_SAMPLER_RECORD, FLOW_RECORD, SAMPLER_RECORD = 7, 9, 11, 15
TOTALS_RECORD = 0x8002
"""Types of records; further ones are skipped."""

FLOW, IPV4, IPV6, MISC = 1, 2, 3, 4
VLAN, AS, NEXT_HOP_4, NEXT_HOP_6, RECEIVED_4, RECEIVED_6 = 6, 7, 10, 11, 12, 13
"""Elements of a flow record; further ones are skipped."""

_TOTALS_BYTES = 148
_FAILURES = 140
"""Size of the totals and position of the sequence failures in them."""


class FileHeader(NamedTuple):
    """What the header of a file says.

    Attributes:
        created_s: when the file was begun, in seconds since 1970.
        compression: how its blocks are compressed.
        appendix_blocks: number of blocks of the appendix.
        appendix: position of the appendix; 0 in a file that its writer has not completed.
        blocks: number of blocks before the appendix.
    """

    created_s: int
    compression: int
    appendix_blocks: int
    appendix: int
    blocks: int

    @property
    def is_complete(self) -> bool:
        """Whether the writer has closed the file: only then are its blocks counted."""
        return self.appendix > 0


class BlockHeader(NamedTuple):
    """What the header of a block says.

    Attributes:
        stored_bytes: size of the content in the file.
        kind: ``RECORD_BLOCK``, or a type of block without flow records.
        is_plain: whether the content is not compressed, whatever the file says.
    """

    stored_bytes: int
    kind: int
    is_plain: bool


def is_flow_file(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is one of nfcapd, in any layout."""
    return head[:2] in (MAGIC, _SWAPPED_MAGIC)


def header_of(head: bytes) -> FileHeader:
    """Return the header in the first ``HEADER_BYTES`` bytes of a file without a ``file_fault``."""
    _, _, _, created_s, compression, _, appendix_blocks, _, appendix, _, blocks = _HEADER.unpack(
        head[:HEADER_BYTES]
    )
    return FileHeader(created_s, compression, appendix_blocks, appendix, blocks)


def is_packed(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` has compressed blocks."""
    return is_flow_file(head) and len(head) >= HEADER_BYTES and head[16] != PLAIN


def file_fault(head: bytes, name: str) -> str:
    """Return why gscope cannot read the file ``name`` that begins with ``head``, "" if it can.

    Args:
        head: the first ``HEADER_BYTES`` bytes, or all if there are fewer.
        name: the file, for the message.
    """
    if head[:2] == _SWAPPED_MAGIC:
        return f"{name} is a file of nfcapd from a big-endian machine, which gscope does not read"
    layout = int.from_bytes(head[2:4], "little")
    if layout == _OLD_LAYOUT and len(head) >= 4:
        return (
            f"{name} is a file of nfcapd 1.6 or older, in layout 1; nfdump 1.7 converts it:"
            f" nfdump -r {name} -w NEW"
        )
    if len(head) < HEADER_BYTES:
        return f"{name} ends within its header, after {len(head)} of {HEADER_BYTES} bytes"
    if layout != _LAYOUT:
        return (
            f"{name} is a file of nfcapd in layout {layout}; gscope reads layout {_LAYOUT}, which"
            " nfdump 1.7 writes"
        )
    if head[16] > ZSTD:
        return (
            f"{name} is a file of nfcapd with unknown compression {head[16]}; nfdump -J 3 -r {name}"
            " changes it to lz4"
        )
    if head[17]:
        return f"{name} is an encrypted file of nfcapd, which gscope does not read"
    return ""


def block_header_of(head: bytes) -> BlockHeader:
    """Return the header of a block in its ``BLOCK_HEADER_BYTES`` bytes."""
    _, stored_bytes, kind, flags = _BLOCK_HEADER.unpack(head)
    return BlockHeader(stored_bytes, kind, bool(flags & _IS_PLAIN))


def sequence_failures_in(appendix: bytes) -> int:
    """Return the sequence failures in the totals of a decompressed appendix block; 0 for none."""
    at = 0
    while at + 4 <= len(appendix):
        kind, size = struct.unpack_from("<HH", appendix, at)
        if kind == TOTALS_RECORD and size >= _TOTALS_BYTES and at + size <= len(appendix):
            (failures,) = struct.unpack_from("<Q", appendix, at + _FAILURES)
            return int(failures)
        if size < 4:
            break
        at += size
    return 0
