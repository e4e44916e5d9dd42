"""The rules by which a node and a sample do not go together, and what a user can do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.analysis.lineage.forest import TreeNode

COMPOSITION = "of estimated groups, only sums of their counts and sums are estimates"
OUTER_JOIN = "an outer join of samples that do not correspond invents rows without a partner"
JOIN = "a join of samples that do not correspond loses pairs: of the rate R it keeps R²"
TOTALS = "rows beside totals are missing where the sample has no packet of a total"
ESTIMATED = "a condition, key or aggregate reads an estimate as if it were exact"
AGGREGATE = "a sample of a group's packets does not estimate it"
HAVING = "HAVING reads an aggregate of groups that are kept in part"
RUNNING = "groups that live across epochs must be kept whole"
MERGE = "all inputs of a merge must be sampled by the same method and set"
ORDER = "only the full traffic shows which packets violate a declared order"
OPERATOR = "the sampling operator chooses from all packets, and keeps states of them"
LIMIT = "the first rows of a sample are not those of the full answer"


@dataclass(frozen=True, slots=True)
class Breach:
    """A node that a sample would break.

    Attributes:
        tree: the node.
        rule: one of the rules above.
        what: the aggregate of the node that breaks it, "" for the node itself.
    """

    tree: TreeNode
    rule: str
    what: str = ""

    @property
    def text(self) -> str:
        """The query, the aggregate if one is to blame, and the rule."""
        of = f", {self.what}" if self.what else ""
        return f"{self.tree.query.name}{of}: {self.rule}"
