"""The request of a command line: which queries to answer.

No module that is loaded before Java is started, this one included, imports the compiler of queries
or its plan nodes: loading those takes longer than the rest of the command line.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.settings import InterfaceSettings

WINDOW_PLANS = ("paired", "paned", "unshared", "superquery")
"""The names of all plans of windows, the default first."""


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """The queries that a command line asks for.

    Attributes:
        queries: files, names of library queries, or names of queries in the texts.
        expressions: query texts.
        delivered: names of the results to deliver; () for the default ones.
        parameters: ``NAME=VALUE`` for PARAM entries.
        window_plan: how windows are computed: the name of a ``WindowPlan``.
        added: texts that a command answers beside those of the user, each with its name.
    """

    queries: Sequence[str] = ()
    expressions: Sequence[str] = ()
    delivered: Sequence[str] = ()
    parameters: Sequence[str] = ()
    window_plan: str = WINDOW_PLANS[0]
    added: Sequence[tuple[str, str]] = ()

    def ensure_some(self, how: str = " with -q") -> None:
        """Refuse a request without a query.

        Args:
            how: the option by which the current command takes a file or a name.

        Raises:
            UsageError: the request has neither a query nor a text.
        """
        if not self.queries and not self.expressions and not self.added:
            message = (
                "no query given: write one with -e 'SELECT …', or name a file or a library "
                f"query{how}; `gscope library` lists them"
            )
            raise UsageError(message)


def expected_bytes(interfaces: Sequence[InterfaceSettings]) -> int | None:
    """Return the size of all captures together; None if one of them is not a regular file."""
    paths = [Path(file) for interface in interfaces for file in interface.files]
    if not all(path.is_file() for path in paths):
        return None
    return sum(path.stat().st_size for path in paths)
