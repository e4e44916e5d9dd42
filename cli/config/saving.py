"""The options that save packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_RING_BYTES = 256 << 20

MIN_RING_BYTES = 1 << 20
"""Room for several of the largest packets."""

_COMPRESSED = (".gz", ".zst", ".lz4", ".xz", ".bz2")


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """The packets that a command line asks to save.

    Attributes:
        path: the file for them.
        queries: names of the results whose packets are saved; () for all.
        limit_bytes: size that the file does not exceed; None for no limit.
        ring_bytes: size of the ring that keeps packets of groups of a live run.
    """

    path: Path
    queries: tuple[str, ...] = ()
    limit_bytes: int | None = None
    ring_bytes: int = DEFAULT_RING_BYTES


def save_request(
    save_path: Path | None = None,
    save_queries: tuple[str, ...] = (),
    save_limit: int | None = None,
    packet_ring: int | None = None,
) -> SaveRequest | None:
    """Return the request of the options; None if no packets are saved.

    Raises:
        UsageError: the options contradict each other, or the file cannot hold packets.
    """
    if save_path is None:
        for value, name in (
            (save_queries, "--save-packets-of"),
            (save_limit, "--save-packets-limit"),
            (packet_ring, "--packet-ring"),
        ):
            if value:
                message = f"{name} has no effect without --save-packets FILE"
                raise UsageError(message)
        return None
    if str(save_path) == "-":
        message = (
            "--save-packets -: standard output is for answers; name a file, such as hits.pcapng"
        )
        raise UsageError(message)
    if save_path.suffix in _COMPRESSED:
        message = (
            f"--save-packets {save_path}: the file is not compressed; name it"
            f" {save_path.with_suffix('')} and compress it afterwards"
        )
        raise UsageError(message)
    if packet_ring is not None and packet_ring < MIN_RING_BYTES:
        message = f"invalid --packet-ring: expected at least 1M, got {packet_ring} bytes"
        raise UsageError(message)
    return SaveRequest(save_path, save_queries, save_limit, packet_ring or DEFAULT_RING_BYTES)
