"""A block: consecutive packets of one source with their index arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PADDING_BYTES = 64
"""Readable bytes every block has behind its last packet, so that a kernel may load a word too far."""


@dataclass(slots=True)
class Block:
    """Consecutive packets of one source, in capture order.

    The arrays belong to the ring; they are valid from ``next_block`` until the block is released.
    Only the first ``count`` entries of an index array mean anything. ``offset[i] + caplen[i]`` never
    reaches beyond ``data.size - PADDING_BYTES``; whoever fills a block guarantees it.

    Attributes:
        data: the packets' bytes (uint8), with ``PADDING_BYTES`` readable bytes at the end.
        offset: where packet i begins in ``data`` (int64).
        caplen: captured bytes (int32).
        wirelen: bytes that were on the wire (int32).
        time_ns: nanoseconds since 1970, UTC (int64).
        linktype: pcap link type of each packet (int32).
        count: packets in the block.
        position: bytes of the input consumed when this block had been filled, for a progress bar.
    """

    data: NDArray[np.uint8]
    offset: NDArray[np.int64]
    caplen: NDArray[np.int32]
    wirelen: NDArray[np.int32]
    time_ns: NDArray[np.int64]
    linktype: NDArray[np.int32]
    count: int = 0
    position: int = 0
