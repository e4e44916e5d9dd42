"""Opens a capture, or several that form one interface, as a packet source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.sources.files.chain import ChainSource
from gscope.capture.sources.files.file import DEFAULT_BLOCK_BYTES, FileSource

if TYPE_CHECKING:
    from gscope.capture.sources.base import BlockSource


def open_source(
    *paths: str,
    name: str | None = None,
    block_bytes: int = DEFAULT_BLOCK_BYTES,
    no_flow_records: str = "",
) -> BlockSource:
    """Open one capture, or several that are read in sequence, and return the packet source.

    Format and compression are recognised by content: pcap, pcapng, and either in gzip, zstd or lz4;
    and files of nfcapd, whose packets are flow records.

    Args:
        paths: files or pipes; ``-`` is standard input.
        name: name for messages; by default the (first) path.
        block_bytes: bytes of input in a block.
        no_flow_records: why files of nfcapd are refused, see ``FileSource``; "" if they are read.

    Raises:
        CaptureError: missing or unreadable; one sentence.
        NotACaptureError: empty or not a capture.
    """
    source: BlockSource
    if len(paths) == 1:
        source = FileSource(
            paths[0], name=name, block_bytes=block_bytes, no_flow_records=no_flow_records
        )
    else:
        members = [
            FileSource(path, block_bytes=block_bytes, no_flow_records=no_flow_records)
            for path in paths
        ]
        source = ChainSource(members, name=name or paths[0])
    source.open()
    return source
