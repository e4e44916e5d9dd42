"""The base of all syntax nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gscope.errors import Position


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of a query text.

    Attributes:
        position: its place in the text, for messages; it does not count in comparisons.
    """

    position: Position = field(compare=False, repr=False, kw_only=True)
