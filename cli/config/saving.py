"""What a command line or its queries ask to save of the packets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

DEFAULT_RING_BYTES = 256 << 20

MIN_RING_BYTES = 1 << 20
"""Room for several of the largest packets."""

_COMPRESSED = (".gz", ".zst", ".lz4", ".xz", ".bz2")


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """The packets to save.

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
    _check_path(save_path, "--save-packets")
    if packet_ring is not None and packet_ring < MIN_RING_BYTES:
        message = f"invalid --packet-ring: expected at least 1M, got {packet_ring} bytes"
        raise UsageError(message)
    return SaveRequest(save_path, save_queries, save_limit, packet_ring or DEFAULT_RING_BYTES)


def request_of_queries(
    saved: Sequence[tuple[str, str]], results: Container[str]
) -> SaveRequest | None:
    """Return what queries themselves ask to save (``save_packets`` in DEFINE); None for nothing.

    Args:
        saved: names of queries, each with its file.
        results: names of the queries whose rows are delivered.

    Raises:
        UsageError: they name several files, or a query among them is not delivered.
    """
    if not saved:
        return None
    for name, _ in saved:
        if name not in results:
            message = (
                f"{name} saves the packets of its rows (save_packets), but its rows are not"
                " delivered; add visibility 'external'; to its DEFINE"
            )
            raise UsageError(message)
    files = dict.fromkeys(file for _, file in saved)
    if len(files) > 1:
        message = (
            f"queries save packets in several files ({', '.join(files)}); a run has one, in which"
            " comments name the queries of a packet"
        )
        raise UsageError(message)
    path = Path(*files)
    _check_path(path, "save_packets")
    return SaveRequest(path, tuple(name for name, _ in saved))


def _check_path(save_path: Path, name: str) -> None:
    if str(save_path) == "-":
        message = f"{name} -: standard output is for answers; name a file, such as hits.pcapng"
        raise UsageError(message)
    if save_path.suffix in _COMPRESSED:
        message = (
            f"{name} {save_path}: the file is not compressed; name it"
            f" {save_path.with_suffix('')} and compress it afterwards"
        )
        raise UsageError(message)
