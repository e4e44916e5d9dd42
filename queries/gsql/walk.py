"""Walking over syntax nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.gsql.nodes import Node

if TYPE_CHECKING:
    from collections.abc import Iterator


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
