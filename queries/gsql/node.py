"""The base of all syntax nodes, and walking over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.errors import Position


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of a query text.

    Attributes:
        position: its place in the text, for messages; it does not count in comparisons.
    """

    position: Position = field(compare=False, repr=False, kw_only=True)


def walk(node: Node) -> Iterator[Node]:
    """Yield ``node`` and all nodes in it, outermost first, in the order of the text."""
    waiting: list[object] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting.extend(reversed(part))
        elif isinstance(part, Node):
            yield part
            names: tuple[str, ...] = type(part).__match_args__
            waiting.extend(getattr(part, name) for name in reversed(names))
