"""Names and text that all generated functions share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.batch_decoder import (
    LIST_ALL,
    LIST_BYTES,
    LIST_IPV4,
    LIST_IPV6,
    LIST_OTHER,
    LIST_PLAIN_IPV4,
    LIST_PLAIN_IPV6,
)
from gscope.capture.lfta.codegen.scope import Variant

if TYPE_CHECKING:
    from collections.abc import Iterable

BATCH_PARAMETERS = "packets, span, memory, literals"
"""Parameters of every function that reads the packets of a batch: three records of
``kernel_arguments.py``, and the address of the STRING literals."""

ALONE_PARAMETERS = f"{BATCH_PARAMETERS}, count, interface"
"""Parameters of the only LFTA of a set, which sorts plain packets itself."""

LIST_OF = {
    Variant.IPV4: LIST_IPV4,
    Variant.IPV6: LIST_IPV6,
    Variant.OTHER: LIST_OTHER,
    Variant.PLAIN_IPV4: LIST_PLAIN_IPV4,
    Variant.PLAIN_IPV6: LIST_PLAIN_IPV6,
    None: LIST_ALL,
}


def indented(lines: Iterable[str], levels: int = 1) -> list[str]:
    """Return ``lines`` indented by ``levels``."""
    return ["    " * levels + line if line else line for line in lines]


def packet_loop(variant: Variant | None) -> list[str]:
    """Return the head of the loop over a batch's packets of one variant (None: all)."""
    at = LIST_BYTES * LIST_OF[variant]
    return [
        f"    for j in range(ld64(memory.lists + {at})):",
        f"        i = ld64(memory.lists + {at + 8} + 8 * j)",
        "        p = span.first + i",
    ]
