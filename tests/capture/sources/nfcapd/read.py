"""What the source of flow records makes of a file of nfcapd, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.capture.sources.flows.collector import MALFORMED
from tests.capture.sources.flows.decoded import records_in
from tests.capture.sources.nfcapd.slow_reader import ODD

from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.flows.source import FlowSource

if TYPE_CHECKING:
    from pathlib import Path

    from tests.capture.sources.nfcapd.slow_reader import Record


def read(
    *paths: Path, block_bytes: int = 1 << 19
) -> tuple[list[tuple[int, Record | str]], FlowSource]:
    """Time and fields of each record of files in sequence, and the source, which has ended."""
    source = FlowSource(open_source(*map(str, paths), block_bytes=block_bytes))
    found: list[tuple[int, Record | str]] = []
    while (block := source.next_block()) is not None:
        times = block.time_ns[: block.count].tolist()
        records = (ODD if each == MALFORMED else each for each in records_in(block))
        found += zip(times, records, strict=True)
    source.close()
    return found, source
