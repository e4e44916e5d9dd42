"""The format of a capture, recognised by its first bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.sources.files import pcap, pcapng
from gscope.capture.sources.nfcapd import layout as nfcapd
from gscope.errors import NotACaptureError

if TYPE_CHECKING:
    from gscope.capture.sources.files.format import CaptureFormat

MAGIC_BYTES = 4


def header_bytes(magic: bytes) -> int:
    """Return how many bytes ``detect_format`` needs of an input that begins with ``magic``.

    No more is read before the first packet is requested: the link behind a pipe may be silent.
    """
    if magic in pcap.MAGICS:
        return pcap.HEADER_BYTES
    if nfcapd.is_flow_file(magic):
        return nfcapd.HEADER_BYTES
    return pcapng.HEADER_BYTES if magic == pcapng.MAGIC else MAGIC_BYTES


def detect_format(head: bytes, name: str) -> tuple[CaptureFormat, int]:
    """Return the format of the input that begins with ``head``, and the size of the file's header.

    Args:
        head: the first ``header_bytes`` bytes, or fewer if the input is shorter.
        name: name of the input, for the message.

    Raises:
        NotACaptureError: the input is not a capture, or ends within its header.
    """
    magic = head[:MAGIC_BYTES]
    needed = header_bytes(magic)
    if not head:
        message = f"{name} is empty"
    elif nfcapd.is_flow_file(magic):
        message = nfcapd.file_fault(head, name)
        if not message:
            from gscope.capture.sources.nfcapd.stream import FlowRecordFormat

            return FlowRecordFormat(), nfcapd.HEADER_BYTES
    elif magic not in pcap.MAGICS and magic != pcapng.MAGIC:
        message = (
            f"{name} is not a capture: it is neither pcap nor pcapng, plain or in gzip, zstd or lz4"
        )
    elif len(head) < needed:
        message = f"{name} ends within its header, after {len(head)} of {needed} bytes"
    elif magic in pcap.MAGICS:
        return pcap.PcapFormat(head), pcap.HEADER_BYTES
    elif fault := pcapng.section_fault(head):
        message = f"{name} is not a usable capture: its section header {fault}"
    else:
        return pcapng.PcapngFormat(), 0
    raise NotACaptureError(message)
