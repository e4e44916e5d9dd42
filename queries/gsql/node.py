"""The base of all syntax nodes, and walking over them."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def substitute(node: Any, change: Callable[[Node], Node | None]) -> Any:
    """Return ``node`` with other nodes in place of some in it.

    Args:
        node: the node; it is returned itself if nothing in it changes.
        change: returns what stands in place of a node; None to keep it and to look inside.
    """
    found = change(node)
    if found is not None:
        return found
    changed: dict[str, Any] = {}
    names: tuple[str, ...] = type(node).__match_args__
    for name in names:
        part = getattr(node, name)
        if isinstance(part, Node):
            new: Any = substitute(part, change)
            is_same = new is part
        elif isinstance(part, tuple):
            new = tuple(substitute(p, change) if isinstance(p, Node) else p for p in part)
            is_same = all(one is other for one, other in zip(new, part, strict=True))
        else:
            continue
        if not is_same:
            changed[name] = new
    return replace(node, **changed) if changed else node
