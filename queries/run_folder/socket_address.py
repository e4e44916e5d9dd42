"""Addresses of Unix sockets, even in folders with long paths."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from gscope.errors import StreamError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST = 100
"""Length of a path in bytes; the kernel accepts 107, and gRPC needs a few of them."""


_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")


class SocketAddress:
    """The Flight address of the socket ``path``, valid until ``close``.

    A path that is too long for the kernel, or has characters with a meaning in addresses, is
    reached through an open descriptor of its folder.

    Attributes:
        path: the path by which this process reaches the socket.
        location: the same as an address of Flight.

    Raises:
        StreamError: the folder cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = -1
        reachable = str(path.absolute())
        if len(os.fsencode(reachable)) > _LONGEST or not _PLAIN.fullmatch(reachable):
            try:
                self._descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                message = f"cannot open the folder {path.parent}: {os_reason(error)}"
                raise StreamError(message) from error
            reachable = f"/proc/self/fd/{self._descriptor}/{path.name}"
        self.path = reachable
        self.location = f"grpc+unix://{reachable}"

    def close(self) -> None:
        """Close the descriptor; harmless when called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
