"""What names and positions stand for in clauses that may use the columns of SELECT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.did_you_mean import other_case
from gscope.queries.gsql import nodes
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import NamedExpression


@dataclass(frozen=True, slots=True)
class OutputColumns:
    """The columns of SELECT, open for look-up by name and position.

    For ``SELECT srcIP, sum(len) AS bytes``:

    Attributes:
        columns: srcIP and bytes, typed and named.
    """

    columns: Sequence[NamedExpression]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, also of those that the query leaves unnamed."""
        return tuple(column.name for column in self.columns)

    def find(self, node: nodes.Expression) -> NamedExpression | None:
        """Return the column that a name stands for: as written, else in another case."""
        if not isinstance(node, nodes.Name) or len(node.parts) > 1:
            return None
        (text,) = node.parts
        meant = text if text in self.names else other_case(text, self.names)
        return next((column for column in self.columns if column.name == meant), None)

    def at(self, node: nodes.Expression) -> NamedExpression | None:
        """Return the column at a position, which counts from 1; None if ``node`` is not a number.

        Raises:
            ResolveError: SELECT has no such column.
        """
        if not isinstance(node, nodes.LiteralSyntax) or node.kind is not nodes.LiteralKind.INTEGER:
            return None
        place = node.value
        assert isinstance(place, int)
        if not 1 <= place <= len(self.columns):
            message = (
                f"invalid position in ORDER BY: expected 1 to {len(self.columns)}, got {place}"
            )
            remedy = ", ".join(f"{n} is {name}" for n, name in enumerate(self.names[:20], 1))
            raise ResolveError(message, position=node.position, remedy=remedy)
        return self.columns[place - 1]
