"""What every syntax node has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gscope.errors import Position


@dataclass(frozen=True, slots=True)
class Node:
    """Anything that stands somewhere in a query text."""

    position: Position = field(compare=False, repr=False, kw_only=True)
