"""The interface of functions on payloads: readers of hostile bytes."""

from __future__ import annotations

from collections.abc import Callable

from gscope.queries.expressions.expressions import Value

Reader = Callable[[bytes], Value]
"""Reads one item from a non-empty payload; returns None if a valid message lacks the item.

Raises ``Undecodable`` (or, through a fault in a library, any other exception) for a payload of
another protocol, a malformed message, or one that is cut off before the item. It reads at most the
bytes that its catalog entry states.
"""


class Undecodable(Exception):
    """The payload cannot be decoded: it is counted, and the value is NULL."""


def host_name(name: bytes) -> bytes:
    """Return a name as it is compared: in lower case, without the dot of the root."""
    return name.lower().removesuffix(b".")
