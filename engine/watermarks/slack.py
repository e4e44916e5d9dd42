"""The skew that SLACK needs: a tuple that a MERGE tolerates must not be late at capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.watermarks.event_time import EventTimes
from gscope.queries.plan.program import MergeNode, StreamInput, node_inputs

if TYPE_CHECKING:
    from gscope.queries.plan.program import Input, Program


def least_skews(program: Program) -> dict[str, int]:
    """Return the least skew, in nanoseconds, of each interface that a MERGE with SLACK reads.

    With this skew, no packet is late whose tuple is at most SLACK behind another of its interface.
    A merged column that does not follow from packet times (a declared ordering) needs no skew: its
    declaration includes a slack.
    """
    times = EventTimes(program)
    skews: dict[str, int] = {}
    for node in program.nodes:
        if not isinstance(node, MergeNode) or not node.slack:
            continue
        for source, column in zip(node.inputs, node.on, strict=True):
            needed_ns = times.longest_ns(source, column, node.slack)
            for interface in _interfaces(program, source):
                skews[interface] = max(skews.get(interface, 0), needed_ns or 0)
    return skews


def _interfaces(program: Program, source: Input) -> set[str]:
    """Return the interfaces whose packets reach ``source``."""
    if isinstance(source, StreamInput):
        return set(program.lfta(source.lfta).interfaces)
    node = next(node for node in program.nodes if node.query == source.query)
    return {name for each in node_inputs(node) for name in _interfaces(program, each)}
