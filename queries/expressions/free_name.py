"""Names that are not in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container


def free_name(wanted: str, taken: Container[str]) -> str:
    """Return ``wanted``, with a number appended if it is in use."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name
