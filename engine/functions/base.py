"""What a function on payloads is: a reader of hostile bytes."""

from __future__ import annotations

from collections.abc import Callable

from gscope.queries.expressions.expressions import Value

Reader = Callable[[bytes], Value]
"""Reads one thing from a payload that is not empty; None if the message is sound but has no such thing.

Raises ``Undecodable`` (or, by a library's fault, anything else) for what is no message of its protocol,
is malformed, or is cut off before the thing. It looks at no more bytes than its catalog entry says.
"""


class Undecodable(Exception):
    """The payload does not tell; it is counted and the value is NULL."""


def host_name(name: bytes) -> bytes:
    """A name as it is compared: in small letters, without the dot that stands for the root."""
    return name.lower().removesuffix(b".")
