"""Which capture format an input has, by its first bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.sources import pcap, pcapng
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from gscope.capture.sources.format import CaptureFormat

HEAD_BYTES = max(pcap.HEADER_BYTES, pcapng.HEADER_BYTES)
"""How many of the first bytes decide."""


def detect_format(head: bytes, name: str) -> tuple[CaptureFormat, int]:
    """The format of the input that begins with ``head``, and how many bytes of it are the file's header.

    Args:
        head: the first ``HEAD_BYTES`` bytes, fewer only if there are no more.
        name: of the input, for the message.

    Raises:
        CaptureError: it is none, or ends within its header.
    """
    if not head:
        message = f"{name} is empty"
        raise CaptureError(message)
    if head[:4] in pcap.MAGICS:
        _ensure_whole(head, pcap.HEADER_BYTES, name)
        return pcap.PcapFormat(head), pcap.HEADER_BYTES
    if head[:4] == pcapng.MAGIC:
        _ensure_whole(head, pcapng.HEADER_BYTES, name)
        fault = pcapng.section_fault(head)
        if fault:
            message = f"{name} is no usable capture: its section header {fault}"
            raise CaptureError(message)
        return pcapng.PcapngFormat(), 0
    message = (
        f"{name} is not a capture: it is neither pcap nor pcapng, plain or in gzip, zstd or lz4"
    )
    raise CaptureError(message)


def _ensure_whole(head: bytes, header_bytes: int, name: str) -> None:
    if len(head) < header_bytes:
        message = f"{name} ends within its header, after {len(head)} of {header_bytes} bytes"
        raise CaptureError(message)
