"""Decompresses the blocks of a file, in memory that is bounded whatever they contain."""

from __future__ import annotations

import bz2
from typing import TYPE_CHECKING

import lz4.block
import numpy as np
import zstandard

from gscope.capture.sources.nfcapd.layout import BZ2, LZ4, LZO, MAX_BLOCK_BYTES, PLAIN, ZSTD
from gscope.capture.sources.nfcapd.lzo import unpack_lzo

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Unpacker:
    """Decompresses blocks one after the other.

    Args:
        compression: how they are compressed, one of the numbers in ``layout.py``.
    """

    def __init__(self, compression: int) -> None:
        self._compression = compression
        self._room: NDArray[np.uint8] | None = None

    def unpack(self, content: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
        """Return the decompressed content, valid until the next call; None if it is damaged.

        Content of more than ``MAX_BLOCK_BYTES`` bytes is damaged, too.
        """
        if self._compression == PLAIN:
            return content
        if self._compression == LZO:
            return self._unpack_lzo(content)
        try:
            made = _UNPACK[self._compression](content.tobytes())
        except (OSError, EOFError, ValueError, MemoryError):
            return None
        except (lz4.block.LZ4BlockError, zstandard.ZstdError):
            return None
        # Of bytes the array would be read-only, for which kernels would be compiled again.
        return np.frombuffer(made, np.uint8)

    def _unpack_lzo(self, content: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
        if self._room is None:
            # Address space: only what blocks fill becomes memory.
            self._room = np.empty(MAX_BLOCK_BYTES, np.uint8)
        size = unpack_lzo(content, self._room)
        return None if size < 0 else self._room[:size]


def _unpack_bz2(content: bytes) -> bytearray:
    unpacker = bz2.BZ2Decompressor()
    made = unpacker.decompress(content, MAX_BLOCK_BYTES)
    if not unpacker.eof:
        raise EOFError
    return bytearray(made)


def _unpack_lz4(content: bytes) -> bytearray:
    made: bytearray = lz4.block.decompress(
        content, uncompressed_size=MAX_BLOCK_BYTES, return_bytearray=True
    )
    return made


def _unpack_zstd(content: bytes) -> bytearray:
    # A size in the frame would be believed, whatever the limit.
    if zstandard.frame_content_size(content) > MAX_BLOCK_BYTES:
        raise ValueError
    made = zstandard.ZstdDecompressor().decompress(content, max_output_size=MAX_BLOCK_BYTES)
    return bytearray(made)


_UNPACK = {BZ2: _unpack_bz2, LZ4: _unpack_lz4, ZSTD: _unpack_zstd}
