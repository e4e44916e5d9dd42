"""Opening captures: a path, or several that are one interface, becomes a packet source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.sources.files.chain import ChainSource
from gscope.capture.sources.files.file import DEFAULT_BLOCK_BYTES, FileSource

if TYPE_CHECKING:
    from gscope.capture.sources.base import BlockSource


def open_source(
    *paths: str, name: str | None = None, block_bytes: int = DEFAULT_BLOCK_BYTES
) -> BlockSource:
    """The open packet source of one capture, or of several that are read as one in this order.

    Format and compression are found by content: pcap, pcapng, and either in gzip, zstd or lz4.

    Args:
        paths: files or pipes; ``-`` is standard input.
        name: what messages call it; by default the (first) path.
        block_bytes: bytes of input in a block.

    Raises:
        CaptureError: missing or unreadable; one sentence.
        NotACaptureError: empty or not a capture.
    """
    source: BlockSource
    if len(paths) == 1:
        source = FileSource(paths[0], name=name, block_bytes=block_bytes)
    else:
        members = [FileSource(path, block_bytes=block_bytes) for path in paths]
        source = ChainSource(members, name=name or paths[0])
    source.open()
    return source
