"""The ring of recent packets in the folder of a run, as its writer and its readers see it.

The capture daemon writes segments, pcapng files of one interface each, and deletes the oldest ones.
The file ``state`` says how far the ring is complete. It is overwritten in place, so that a full
disk does not make it outdated.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from pathlib import Path

NEVER = -(1 << 63)
"""The time until which packets are gone if none are."""

AT_END = (1 << 63) - 1
"""What a ring is written up to when no more packets will come."""

_STATE = "state"
_LAYOUT = struct.Struct("<qqq")
_SUFFIX = ".pcapng"


class RingState(NamedTuple):
    """How far a ring is complete.

    Attributes:
        written_ns: all packets that were taken before this time, by ``time.monotonic_ns()``, were
            written or left out.
        gone_ns: the greatest time of a packet that was deleted, or ``NEVER``.
    """

    written_ns: int
    gone_ns: int


class Segment(NamedTuple):
    """A file of a ring.

    Attributes:
        number: rises with time.
        interface: the interface of its packets.
    """

    number: int
    interface: str

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.number:012}.{quote(self.interface, safe='')}{_SUFFIX}"


def ring_segments(folder: Path) -> list[Segment]:
    """Return the segments in ``folder``, oldest first."""
    found = []
    for path in folder.glob(f"*{_SUFFIX}"):
        number, _, interface = path.name.removesuffix(_SUFFIX).partition(".")
        if number.isdecimal():
            found.append(Segment(int(number), unquote(interface)))
    return sorted(found)


def read_state(folder: Path) -> RingState | None:
    """Return the state of the ring in ``folder``; None if there is none, or it is just written."""
    try:
        written_ns, gone_ns, check = _LAYOUT.unpack((folder / _STATE).read_bytes())
    except (OSError, struct.error):
        return None
    return RingState(written_ns, gone_ns) if check == written_ns ^ gone_ns else None


class StateFile:
    """Writes the state of a ring.

    Args:
        folder: the folder of the ring.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, folder: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(folder / _STATE, flags, 0o600)

    def write(self, state: RingState) -> None:
        """Replace the state.

        Raises:
            OSError: the file cannot be written.
        """
        check = state.written_ns ^ state.gone_ns
        os.pwrite(self._descriptor, _LAYOUT.pack(*state, check), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
