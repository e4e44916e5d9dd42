"""What a command line asks for. It imports no compiler: Java is started before that is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asks for.

    Attributes:
        queries: files, names of library queries, or names of queries in the texts.
        expressions: query texts.
        delivered: names of the results to deliver; () for the usual ones.
        parameters: ``NAME=VALUE`` for PARAM entries.
    """

    queries: Sequence[str] = ()
    expressions: Sequence[str] = ()
    delivered: Sequence[str] = ()
    parameters: Sequence[str] = ()

    def ensure_some(self, how: str = " with -q") -> None:
        """Refuse to go on without a query.

        Args:
            how: by what means the command at hand is given a file or a name.

        Raises:
            UsageError: neither a query nor a text is named.
        """
        if not self.queries and not self.expressions:
            message = (
                "no query given: write one with -e 'SELECT …', or name a file or a library "
                f"query{how}; `gscope library` lists them"
            )
            raise UsageError(message)
