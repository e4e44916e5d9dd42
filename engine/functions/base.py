"""The interface of functions on payloads: readers of hostile bytes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from gscope.queries.expressions.expressions import Value

Reader = Callable[[bytes], Value]
"""Reads one item from a non-empty payload; returns None if a valid message lacks the item.

Raises ``ForeignPayload`` for a payload of another protocol, ``Undecodable`` (or, through a fault in
a library, any other exception) for a malformed message, or one that is cut off before the item. It
reads at most the bytes that its catalog entry states.
"""


class Outcome(Enum):
    """What came of reading a payload.

    Payloads that were not read are counted, and the value is NULL.
    """

    READ = "read"
    FOREIGN = "foreign"
    """It does not begin a message of the protocol: it is of another one, or continues a message."""
    DAMAGED = "damaged"
    """It begins a message of the protocol that is malformed, or cut off before the item."""


class Undecodable(Exception):
    """The payload begins a message of the protocol that cannot be decoded."""


class ForeignPayload(Exception):
    """The payload does not begin a message of the protocol."""


def host_name(name: bytes) -> bytes:
    """Return a name as it is compared: in lower case, without the dot of the root."""
    return name.lower().removesuffix(b".")
