"""What divides the rows of streams, and the packets of an interface among threads, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.plan.show_expressions import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.plan.program import Lfta
    from gscope.queries.plan.program_partitioning import Partitioning, PartitionMember


def show_set(members: Sequence[PartitionMember]) -> str:
    """Return a set of members, such as ``(srcIP, {srcPort, destPort})``."""
    return f"({', '.join(map(_member, members))})"


def show_stream_partitions(lfta: Lfta) -> str:
    """Return what divides the rows of an LFTA; "" if nothing does."""
    divided = lfta.partitioning
    if divided is None:
        return ""
    how = "as packets are" if divided.follows_set else "not as packets are"
    return f"{divided.partitions}, by {show_set(divided.members)}, {how}"


def show_fanout(partitioning: Partitioning, *, is_expressible: bool) -> str:
    """Return how threads of one interface divide its packets.

    Args:
        partitioning: the partitioning of the program.
        is_expressible: whether the kernel can divide packets by its set.
    """
    by_flow = "by flow: a hash of addresses and ports, alike for both directions"
    if not partitioning.members:
        return by_flow
    members = show_set(partitioning.members)
    if is_expressible:
        return f"by {members}, on Ethernet; on other links by flow"
    return f"{by_flow}; the kernel cannot divide packets by {members}"


def _member(member: PartitionMember) -> str:
    shown = ", ".join(map(show, member.values))
    return shown if len(member.values) == 1 else f"{{{shown}}}"
