"""The contract of packet sources: their life from opening to closing, and ownership."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.split.kernel_filter import Condition


@dataclass(slots=True)
class SourceStats:
    """Counters of one packet source since it was opened.

    At any block boundary ``received_packets`` is the sum of ``dropped_packets``,
    ``filtered_packets`` and the packets in the blocks returned so far.

    Attributes:
        received_packets: packets that came from the source, lost and filtered ones included.
        received_bytes: bytes on the wire of the packets in the blocks returned so far.
        dropped_packets: packets lost because the ring or the operating system's buffer was full,
            and those that are absent.
        absent_packets: of the dropped ones, those that are only known by the numbers that senders
            give to what they send: they may not have reached this machine.
        filtered_packets: packets that the source rejected on purpose.
        frozen_total: number of times the ring became full.
        interruptions_total: number of times the device went down or vanished.
        unread_links: packets per link type that gscope does not decode, by the link type's name.
        drops_read_ns: real time right before ``dropped_packets`` was last brought up to date, in
            nanoseconds since 1970: no later drop is in it. None if the source does not report that.
        waited_ns: time for which the reader has waited for packets, in nanoseconds; None if the
            source does not report that.
    """

    received_packets: int = 0
    received_bytes: int = 0
    dropped_packets: int = 0
    absent_packets: int = 0
    filtered_packets: int = 0
    frozen_total: int = 0
    interruptions_total: int = 0
    unread_links: dict[str, int] = field(default_factory=dict)
    drops_read_ns: int | None = None
    waited_ns: int | None = None


class InputState(Enum):
    """Whether packets can come from a source; the values are those of ``gscope status``."""

    READING = "reading"
    """A capture whose end has not been reached."""
    ENDED = "ended"
    """A capture that was read to its end."""
    UP = "up"
    """A device that can deliver packets."""
    DOWN = "down"
    """A device that exists but is switched off."""
    GONE = "gone"
    """A device that does not exist, or not any more."""


@dataclass(frozen=True, slots=True)
class RingUse:
    """How full the buffer between a source and its reader is.

    Attributes:
        size_bytes: memory for packets that have not been read; 0 if the source has no ring of a
            fixed size.
        occupancy: share of the ring that is filled and not released, 0 to 1. Of several rings the
            fullest counts, because it loses packets first.
    """

    size_bytes: int
    occupancy: float


NO_RING = RingUse(0, 0.0)
"""What a source without a ring reports."""


class PacketSource(Protocol):
    """The origin of an interface's packets: a capture, a device, several rings of a device.

    What all sources have in common. A ``CaptureSource`` ends and hands out blocks when it has them;
    a ``LiveSource`` waits for packets and does not end by itself. The life of a source:

    * **Construction** checks arguments and acquires nothing. ``name`` and ``device`` are valid.
    * **Opening**: ``open`` acquires everything that needs privileges or may be missing. If it
      raises, the source holds nothing. Packets of a device are let in only by ``LiveDevice.start``,
      which needs no privilege, so that a process opens all devices, drops its privileges and then
      captures. They wait for ``LiveDevice.prepare``, while their reader gets ready.
    * **Reading** (``next_block``) belongs to one thread. Only ``wake`` and ``interrupt`` may be
      called from another one.
    * **Ownership**: a source owns the memory of its blocks. A block, and every array of it, is
      valid until the next call of ``next_block``, ``release`` or ``close``; the caller may change
      it until then. A block from ``next_block`` has at least one packet. Blocks of
      ``BlockSource.new_block`` belong to the caller.
    * **Loss** is never silent: see ``SourceStats``. Input that is truncated or damaged is not an
      error: whole packets are handed out and ``damage`` describes the rest.
    * **Idleness** is a fact that is looked up, not a timeout: ``CaptureSource.is_ready`` and
      ``LiveSource.is_idle``.
    * **End**: once ``next_block`` of a ``CaptureSource`` has returned None, every later call does,
      and ``state`` is ``ENDED``. A ``LiveSource`` returns None when its timeout passes. When its
      device vanishes it waits for the device to return, and meanwhile ``state`` is ``GONE`` and
      ``failure`` gives the reason.
    * **Errors**: ``next_block`` raises ``CaptureError`` if the operating system refuses to
      continue; after that only ``close`` is useful. Bad bytes raise nothing.
    * **Closing**: ``close`` releases everything, in any state and any number of times. ``stats``,
      ``damage``, ``state`` and ``ring_use`` still answer. ``next_block`` of a closed
      ``CaptureSource`` returns None, that of a closed ``LiveSource`` raises ``CaptureError``.

    Attributes:
        name: what the user calls the source, for messages: the name of an interface, or a path.
        device: what is read: the system's name of a device, or the name of a capture.
        stats: counters up to now. Read the attribute each time: the object may be another one.
        damage: sentences on input that could not be used, or on a device that could not be captured
            again; empty while there is none. It grows while the source is read.
    """

    name: str
    device: str

    @property
    def stats(self) -> SourceStats:
        """See the class."""

    @property
    def damage(self) -> list[str]:
        """See the class."""

    def open(self) -> None:
        """Open the input.

        Raises:
            CaptureError: missing, unreadable or not permitted; one sentence with the remedy.
            NotACaptureError: an input that is empty or not a capture.
            NoDeviceError: a device that does not exist.
            UsageError: a filter that does not compile.
        """

    def state(self) -> InputState:
        """Return whether packets can come; in any state of the source, without blocking."""

    def ring_use(self) -> RingUse:
        """Return how full the ring is; in any state of the source, without blocking."""

    def close(self) -> None:
        """Release everything; harmless when called twice, or on a source that was never opened."""


class CaptureSource(PacketSource, Protocol):
    """A packet source that ends: a file, several in sequence, a pipe.

    Attributes:
        size_bytes: bytes of input in all, None if unknown (a pipe); valid once open.
    """

    size_bytes: int | None

    def next_block(self) -> Block | None:
        """Return the next block, or None at the end of input; block until there is one."""

    def is_ready(self, timeout_s: float) -> bool:
        """Return whether ``next_block`` would return without waiting for its input.

        A source that reads ahead waits up to ``timeout_s`` seconds for that. One that does not
        cannot know, and returns True at once: files, which have their packets, are read so.
        """


class BlockSource(CaptureSource, Protocol):
    """A capture source that can fill the caller's blocks, for a ring that reads ahead.

    Use either ``next_block`` or ``fill``, not both.

    Attributes:
        block_bytes: bytes of input that a block of this source should have room for; valid once
            open.
    """

    block_bytes: int

    def new_block(self) -> Block:
        """Return an empty block of the size that suits this source, for ``fill``.

        The caller owns it.
        """

    def fill(self, block: Block) -> bool:
        """Fill ``block`` with the next packets, at least one; return False at the end of input.

        Blocks until there is a packet. May replace the block's arrays by larger ones. The source
        keeps no reference to the block: it may be read, changed and filled again in any order with
        others.
        """

    def interrupt(self) -> None:
        """Make ``fill`` return False soon, now and in future, even if it is waiting.

        From any thread.

        Packets that were read and unpacked may still be handed out before that.
        """


class LiveDevice(PacketSource, Protocol):
    """A device that is captured live, by one ring or several; ``open`` lets no packets in."""

    def narrow(self, condition: Condition) -> None:
        """Reject packets that cannot fulfil ``condition`` where that costs nothing.

        Before ``start``.

        Packets that the kernel rejects so are not counted.
        """

    def start(self) -> None:
        """Let packets in; earlier packets are neither kept nor counted."""

    def prepare(self) -> bool:
        """Get ready to hand out packets; once, some time after ``start``.

        If more packets have come than there is room for, all are discarded uncounted, and packets
        are let in again.

        Return whether they are.
        """

    @property
    def failure(self) -> str:
        """The reason why no packet comes unless the device returns; "" while some may come."""


class LiveSource(LiveDevice, Protocol):
    """Packets of a device as they arrive."""

    def next_block(self, timeout_s: float) -> Block | None:
        """Return the next block.

        None if there was none within ``timeout_s`` seconds, or after ``wake``. Either way
        ``stats.dropped_packets`` is brought up to date last.

        Raises:
            CaptureError: the operating system refuses to continue, or the source is not open.
        """

    def release(self, block: Block) -> None:
        """Return the memory of ``block`` ahead of the next ``next_block``.

        Harmless when repeated.
        """

    def is_idle(self) -> bool:
        """Return whether no block is held and there is nothing to hand out: a fact, looked up now.

        Packets that arrived longer ago than the source may hold them back (the retire time of its
        blocks) were handed out.
        """

    def wake(self) -> None:
        """Make a ``next_block`` that waits, or the next one that would, return None.

        From any thread.
        """
