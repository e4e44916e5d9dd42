"""The trees of a query set: each result with all the queries that it reads, down to packets.

A query with several readers is in each of their trees, once for each time that it is read. So the
packets of one LFTA can be several leaves. Leaves are numbered from left to right, and so are
groupings; the numbers are those of LFTAs and of aggregating nodes in the program, from left to
right in the same tree, because neither rules nor the split change their order.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from gscope.queries.plan.logical import (
    Join,
    LogicalQuery,
    Merge,
    Node,
    QueryScan,
    Scan,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_LEAVES = 256
"""The most leaves of a tree: queries that read each other twice make 2ⁿ."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeNode:
    """A node of a tree.

    Attributes:
        node: the operator; its inputs are ``inputs`` of this node.
        query: the query whose text it comes from.
        inputs: the nodes below, those of other queries among them.
        is_root: whether it is the root of ``query``, whose LIMIT it has then.
        stream: the name of the stream of packets of a leaf, "" for any other node.
    """

    node: Node
    query: LogicalQuery
    inputs: tuple[TreeNode, ...]
    is_root: bool
    stream: str = ""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of the leaves below, each once, in order."""
        return tuple(dict.fromkeys(leaf.stream for leaf in self.leaves()))

    def walk(self) -> Iterator[TreeNode]:
        """Yield the nodes below and the node itself, each after its inputs, from left to right."""
        for each in self.inputs:
            yield from each.walk()
        yield self

    def leaves(self) -> Iterator[TreeNode]:
        """Yield the leaves from left to right."""
        return (each for each in self.walk() if not each.inputs)

    def own_inputs(self) -> tuple[TreeNode, ...]:
        """Return the packets and queries that ``query`` reads itself, from left to right."""
        return tuple(
            each
            for each in self.walk()
            if each.query is self.query and isinstance(each.node, Scan | QueryScan)
        )

    def is_above(self, other: TreeNode) -> bool:
        """Return whether ``other`` is this node or one below it."""
        return any(each is other for each in self.walk())


def leaf_count(root: str, queries: Mapping[str, LogicalQuery]) -> int:
    """Return the number of leaves that the tree of a query would have."""
    counts: dict[str, int] = {}

    def of_node(node: Node) -> int:
        match node:
            case Scan():
                return 1
            case QueryScan():
                if node.query not in counts:
                    counts[node.query] = of_node(queries[node.query].root)
                return counts[node.query]
            case _:
                return sum(map(of_node, nodes_below(node)))

    return of_node(queries[root].root)


def grown(root: str, queries: Mapping[str, LogicalQuery], streams: Sequence[str]) -> TreeNode:
    """Return the tree of a query.

    Args:
        root: the name of the query.
        queries: all queries by name.
        streams: the name of the stream of each leaf, from left to right.
    """
    names = iter(streams)

    def of_query(name: str) -> TreeNode:
        return of_node(queries[name].root, queries[name], is_root=True)

    def of_node(node: Node, query: LogicalQuery, *, is_root: bool) -> TreeNode:
        match node:
            case Scan():
                return TreeNode(node, query, (), is_root, next(names))
            case QueryScan():
                below = of_query(node.query)
                return TreeNode(node, query, (below,), is_root)
            case _:
                inputs = tuple(of_node(each, query, is_root=False) for each in nodes_below(node))
                return TreeNode(node, query, inputs, is_root)

    return of_query(root)


def tree_of_one(node: Node) -> TreeNode:
    """Return the tree of a part of one query; the streams are its inputs, by their numbers."""
    query = LogicalQuery("", node, node.schema, is_external=False, text="")
    numbers = count()

    def of_node(node: Node) -> TreeNode:
        below = nodes_below(node)
        stream = "" if below else str(next(numbers))
        return TreeNode(node, query, tuple(map(of_node, below)), False, stream)

    return of_node(node)


def nodes_below(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node of a plan."""
    match node:
        case Scan() | QueryScan():
            return ()
        case Merge() | Join():
            return node.inputs
        case _:
            return (node.input,)
