"""What sends rows to one kind of server."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Protocol

from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.cli.outlets.spool import Block


class OutletError(Exception):
    """The server cannot be reached or did not accept rows; they are sent again.

    Args:
        reason: why, as a part of a sentence.
    """


class RowsRefused(Exception):
    """The server will never accept rows of a batch; they are counted and not sent again.

    Args:
        reason: why, as a part of a sentence.
        rows: how many rows of the batch; the others were accepted.
    """

    def __init__(self, reason: str, rows: int) -> None:
        super().__init__(reason)
        self.rows = rows


def reason_of(error: OSError) -> str:
    """Return why a connection failed, as a part of a sentence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or 'unknown reason').replace('_', ' ').lower()}"
    return os_reason(error)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that are sent and acknowledged together. After a failure the same rows are sent again.

    Attributes:
        run: the name of the run.
        token: a random text that no other run has.
        block: the rows.
    """

    run: str
    token: str
    block: Block

    @property
    def key(self) -> str:
        """Return a text that only these rows have, however often they are sent."""
        last = self.block.number + len(self.block.lines) - 1
        return f"{self.token}-{self.block.query}-{self.block.number}-{last}"


class Outlet(Protocol):
    """A connection to one server, which one thread uses."""

    MOST_ROWS: int
    """The most rows of a batch."""
    MOST_BYTES: int
    """The most bytes of a batch, as NDJSON; a larger row is a batch of its own."""

    def send(self, batch: Batch) -> None:
        """Send rows, and return once the server has accepted them, as far as it says so.

        Raises:
            OutletError: it did not, as far as is known; the connection is opened again next time.
            RowsRefused: it never will accept some of them.
        """

    def close(self) -> None:
        """Close the connection; called from another thread, it ends a ``send``."""
