"""Whether the LFTAs of a replay run in parts, each on a core of its own.

A replay of one interface with many LFTAs would leave all other cores idle until the first epoch
ends. Several interfaces share the cores anyway (``capture/replay/side_by_side.py``).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from gscope.queries.run_folder.cores import usable_cores

if TYPE_CHECKING:
    from gscope.capture.settings import CaptureSettings
    from gscope.queries.plan.program import Program

LEAST_LFTAS = 4
"""LFTAs for which a part is worth its own decoding of all packets."""

MOST_PARTS = 4
"""Parts of one interface at most. A third of their work is to hand over rows, for which all parts
need the interpreter."""

BLOCK_BYTES = 4 << 20
"""Bytes of a block that several threads process: at its end, all wait for the last of them."""


def parts_of(program: Program, settings: CaptureSettings) -> int:
    """Return the number of parts in which the LFTAs of each interface run; 1 if they run together.

    They run together in a live capture, where a clock holds packets back, and where LFTAs decide
    together about a packet: whether it is saved, or counted as shed.
    """
    is_held_back = settings.speed is not None or settings.heartbeat_every_tick
    is_alone = len(settings.interfaces) == 1 and bool(settings.interfaces[0].files)
    sheds = settings.shedding is not None and settings.shedding.is_on
    if is_held_back or sheds or settings.saved is not None or not is_alone:
        return 1
    (interface,) = settings.interfaces
    lftas = sum(interface.name in lfta.interfaces for lfta in program.lftas)
    return max(1, min(usable_cores(), lftas // LEAST_LFTAS, MOST_PARTS))


def with_block_bytes(program: Program, settings: CaptureSettings) -> CaptureSettings:
    """Return settings with larger blocks if LFTAs run in parts and no size of blocks is set."""
    if settings.block_bytes is not None or parts_of(program, settings) == 1:
        return settings
    return dataclasses.replace(settings, block_bytes=BLOCK_BYTES)
