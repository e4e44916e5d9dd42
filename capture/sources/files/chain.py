"""Several captures that form one interface, read in sequence (rotated captures)."""

from __future__ import annotations

import stat
import threading
from typing import TYPE_CHECKING

from gscope.capture.sources.base import NO_RING, InputState, RingUse, SourceStats
from gscope.capture.sources.files.held import status_of
from gscope.capture.sources.files.stored import STANDARD_INPUT, ReadingInterrupted
from gscope.errors import CaptureError, CutCaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.sources.block import Block
    from gscope.capture.sources.files.file import FileSource


class ChainSource:
    """The packets of several captures in sequence; see ``BlockSource``.

    Args:
        members: the captures, at least one, not yet open. Only one is open at a time.
        name: name of the whole, for messages; damage is reported under the members' own names.
    """

    def __init__(self, members: Sequence[FileSource], *, name: str) -> None:
        self.name = name
        self.device = name
        self.stats = SourceStats()
        self.size_bytes: int | None = None
        self.damage: list[str] = []
        self.block_bytes = 0
        self._members = list(members)
        self._current = 0
        self._base_bytes = 0
        self._interrupted = threading.Event()
        self._block: Block | None = None
        self._is_ended = False
        for member in self._members:
            member.stats = self.stats
            member.damage = self.damage

    def open(self) -> None:
        """See ``PacketSource``.

        Every file is checked now, so that a bad one is found before work begins.

        A pipe can be opened only once, so it is checked when its turn comes. A compressed member
        that is damaged before its first packet is skipped.
        """
        cut: list[CutCaptureError] = []
        for member in reversed(tuple(self._members)):
            if member is self._members[0] or _is_file(member) or not _exists(member):
                try:
                    member.open()
                except CutCaptureError as error:
                    cut.insert(0, error)
                    self._members.remove(member)
                    continue
                if member is not self._members[0]:
                    member.close()
        if not self._members:
            raise cut[0]
        self.damage += [f"{error}; skipped" for error in cut]
        if cut and not self._members[0].is_open:
            self._members[0].open()
        sizes = [member.size_bytes for member in self._members]
        known = [size for size in sizes if size is not None]
        self.size_bytes = sum(known) if len(known) == len(sizes) else None
        self.block_bytes = max(member.block_bytes for member in self._members)

    def new_block(self) -> Block:
        """See ``BlockSource``; the size suits the largest member."""
        return max(self._members, key=lambda member: member.block_bytes).new_block()

    def next_block(self) -> Block | None:
        """See ``CaptureSource``."""
        if self._block is None:
            self._block = self.new_block()
        return self._block if self.fill(self._block) else None

    def is_ready(self, timeout_s: float) -> bool:  # noqa: ARG002  # does not read ahead
        """See ``CaptureSource``."""
        return True

    def state(self) -> InputState:
        """See ``PacketSource``."""
        return InputState.ENDED if self._is_ended else InputState.READING

    def ring_use(self) -> RingUse:
        """See ``PacketSource``."""
        return NO_RING

    def fill(self, block: Block) -> bool:
        """See ``BlockSource``."""
        while self._current < len(self._members) and not self._interrupted.is_set():
            member = self._members[self._current]
            if member.fill(block):
                block.position += self._base_bytes
                return True
            if self._interrupted.is_set():
                break
            self._base_bytes += member.size_bytes or 0
            self._current += 1
            self._open_current()
        block.count = 0
        self._is_ended = True
        return False

    def interrupt(self) -> None:
        """See ``BlockSource``."""
        self._interrupted.set()
        for member in self._members:
            member.interrupt()

    def close(self) -> None:
        """See ``PacketSource``."""
        for member in self._members:
            member.close()
        self._current = len(self._members)
        self._block = None

    def _open_current(self) -> None:
        if self._current < len(self._members):
            try:
                self._members[self._current].open()
            except CaptureError as error:
                # It existed when work began, or is a pipe: the packets read so far remain valid.
                self.damage.append(f"{error}; skipped")
            except ReadingInterrupted:
                return


def _exists(member: FileSource) -> bool:
    return member.path == STANDARD_INPUT or _mode(member) is not None


def _is_file(member: FileSource) -> bool:
    mode = _mode(member)
    return mode is not None and stat.S_ISREG(mode)


def _mode(member: FileSource) -> int | None:
    try:
        return status_of(member.path).st_mode
    except (OSError, ValueError):
        return None
