"""The options that save packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_COMPRESSED = (".gz", ".zst", ".lz4", ".xz", ".bz2")


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """The packets that a command line asks to save.

    Attributes:
        path: the file for them.
        queries: names of the results whose packets are saved; () for all.
        limit_bytes: size that the file does not exceed; None for no limit.
    """

    path: Path
    queries: tuple[str, ...] = ()
    limit_bytes: int | None = None


def save_request(
    save_path: Path | None = None,
    save_queries: tuple[str, ...] = (),
    save_limit: int | None = None,
) -> SaveRequest | None:
    """Return the request of the options; None if no packets are saved.

    Raises:
        UsageError: the options contradict each other, or the file cannot hold packets.
    """
    if save_path is None:
        for value, name in (
            (save_queries, "--save-packets-of"),
            (save_limit, "--save-packets-limit"),
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
    return SaveRequest(save_path, save_queries, save_limit)
