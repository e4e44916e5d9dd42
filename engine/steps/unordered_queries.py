"""Latent queries: those whose rows need no order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.plan.program import (
    MergeNode,
    SelectionNode,
    StreamInput,
    WatchlistJoinNode,
    node_inputs,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from gscope.queries.plan.program import Program


def latent_sources(program: Program, interfaces: Collection[str]) -> frozenset[str]:
    """Return the latent queries: selections and merges of rows of latent ``interfaces`` alone.

    An operator on epochs emits rows of epochs, which have an order again.
    """
    latent: set[str] = set()
    for node in program.nodes:
        if isinstance(node, SelectionNode | WatchlistJoinNode | MergeNode) and all(
            set(program.lfta(source.lfta).interfaces) <= set(interfaces)
            if isinstance(source, StreamInput)
            else source.query in latent
            for source in node_inputs(node)
        ):
            latent.add(node.query)
    return frozenset(latent)
