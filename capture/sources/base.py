"""What every packet source promises."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gscope.capture.sources.block import Block


@dataclass(slots=True)
class SourceStats:
    """Counters of one packet source since it was opened; ``received_bytes`` are bytes on the wire.

    received_packets = dropped_packets + filtered_packets + packets handed out, at any block border.
    ``unread_links`` are those of a capture whose link type gscope does not read, by its name.
    """

    received_packets: int = 0
    received_bytes: int = 0
    dropped_packets: int = 0
    filtered_packets: int = 0
    frozen_total: int = 0
    unread_links: dict[str, int] = field(default_factory=dict)


class PacketSource(Protocol):
    """Where packets come from: a file, an interface, a generator.

    Attributes:
        name: what the user calls it (a path, a device), for messages.
        stats: live counters.
        size_bytes: bytes of input in all, None when unknown (a pipe).
        damage: sentences on what of the input was not usable, empty when it was whole. A truncated or
            damaged file is not an error: what is whole is handed out, the rest is told here.
    """

    name: str
    stats: SourceStats
    size_bytes: int | None
    damage: list[str]

    def open(self) -> None:
        """Open the input and read its header.

        Raises:
            CaptureError: missing or unreadable; one sentence.
            NotACaptureError: empty or not a capture.
        """

    def next_block(self) -> Block | None:
        """The next block, or None at the end of input. Blocks until one is there.

        The block is valid until the following call of ``next_block`` or ``close``.
        """

    def close(self) -> None:
        """Release everything; harmless when called twice."""


class BlockSource(PacketSource, Protocol):
    """A packet source that fills blocks of somebody else, so that a ring can run it ahead of its reader.

    Attributes:
        block_bytes: bytes of input that a block of this source should have room for; known once open.
    """

    block_bytes: int

    def new_block(self) -> Block:
        """An empty block of the size that suits this source, for ``fill``."""

    def fill(self, block: Block) -> bool:
        """Fill ``block`` with the next packets, one at least; False at the end of input.

        Blocks until there is a packet. The block's arrays may be replaced by larger ones. ``fill`` keeps
        nothing of the block: it may be read, changed and filled again in any order with other blocks.
        """

    def interrupt(self) -> None:
        """Make a ``fill`` that waits for input in another thread return False soon; so will later ones."""
