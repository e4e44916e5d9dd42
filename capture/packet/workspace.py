"""The working memory of ``locate``, besides the packets and their records.

It holds the counters of reasons, the number of slots taken since the batch began (at ``TAKEN``),
and the slots. A slot holds an expanded packet of a link that compresses headers; the packet's
record points into the slot. A batch has at most ``SLOTS`` packets, so a slot keeps its packet until
the next batch begins.
"""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import ld64, st64
from gscope.capture.packet.decode_errors import REASON_COUNT

SLOTS = 128
"""Largest number of packets in a batch; a power of two."""
SLOT_HEADERS_BYTES = 48
"""Bytes of the headers of IPv6 and UDP."""
SLOT_FRAME_BYTES = 2047
"""The largest frame of IEEE 802.15.4, on its longest radios (aMaxPhyPacketSize)."""
SLOT_BYTES = (SLOT_HEADERS_BYTES + SLOT_FRAME_BYTES + 64 + 63) // 64 * 64
"""Including 64 bytes that may be loaded after the packet."""

TAKEN = 8 * REASON_COUNT
WORKSPACE_BYTES = TAKEN + 8 + SLOTS * SLOT_BYTES


@kernel
def begin_batch(workspace: int) -> None:
    """Release all slots."""
    st64(workspace + TAKEN, 0)


@kernel
def take_slot(workspace: int) -> int:
    """Return the address of the next slot."""
    taken = ld64(workspace + TAKEN)
    st64(workspace + TAKEN, taken + 1)
    return workspace + TAKEN + 8 + (taken & (SLOTS - 1)) * SLOT_BYTES
