"""Errors of Arrow Flight as errors of gscope, for the clients of a log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.flight as flight

from gscope.errors import DisconnectedError, StreamError

if TYPE_CHECKING:
    from types import TracebackType


class FlightErrors(ABC):
    """Context that turns errors of Flight into ``StreamError``."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, flight.FlightServerError | flight.FlightUnauthenticatedError):
            raise StreamError(self.refusal(error)) from error
        if isinstance(error, pa.ArrowException | OSError):
            raise self.disconnection(error) from error

    @abstractmethod
    def refusal(self, error: BaseException) -> str:
        """Return what to report if the server refused."""

    def disconnection(self, error: BaseException) -> StreamError:
        """Return the error to raise if the server does not answer, or cannot be connected to."""
        return DisconnectedError(self.silence(error))

    @abstractmethod
    def silence(self, error: BaseException) -> str:
        """Return what to report if the server does not answer."""


def sentence_of(error: BaseException) -> str:
    """Return what a server says in ``error``, without what Flight appends."""
    return str(error).split(". Detail:")[0].split(". gRPC client debug context:")[0]
