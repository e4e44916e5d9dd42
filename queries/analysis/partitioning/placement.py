"""Where each operator runs if packets are divided by a set, and what the aggregating host receives.

An operator whose inputs are divided runs on all hosts if its compatible set determines the set that
packets are divided by. If not, a grouping whose aggregates can be merged from partial ones is
split: hosts make partial rows, which the aggregating host merges. ORDER BY … LIMIT of what runs on
all hosts is split, too: hosts choose their first rows of each epoch, and the aggregating host the
first of these. Every other operator runs there, and so does all that reads what is split.

The cost of an operator is what the aggregating host receives for it: the rows of divided inputs if
it runs there, partial rows if it is split, the first rows of all hosts, its own rows if it runs on
all hosts and is a result.

Source: "Query-aware partitioning for monitoring massive network data streams" (SIGMOD 2008), §4.2.1
(cost) and §5 (transformed plans).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from gscope.queries.analysis.partitioning.compatible import ANY, is_compatible
from gscope.queries.analysis.partitioning.traffic import packet_width
from gscope.queries.plan.logical import Filter, Scan
from gscope.queries.plan.row_order import orders_epochs
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.partitioning.operators import Operator
    from gscope.queries.analysis.partitioning.sets import PartitionSet
    from gscope.queries.analysis.partitioning.traffic import Rows
    from gscope.queries.plan.logical import Node


class Place(Enum):
    """Where an operator runs."""

    HOSTS = "hosts"
    SPLIT = "split"
    FIRST = "first"
    CENTRAL = "central"


@dataclass(frozen=True, slots=True)
class Placement:
    """The places of the operators of a query set.

    Attributes:
        given: the set that packets are divided by.
        places: the place of each operator, in order.
        received: the bytes that the aggregating host receives for each operator, for each packet.
        total: the bytes that it receives in all; rows that several operators read are sent once.
    """

    given: PartitionSet
    places: tuple[Place, ...]
    received: tuple[float, ...]
    total: float

    @property
    def cost(self) -> float:
        """The most that is received for one operator."""
        return max(self.received, default=0.0)


def place(
    operators: Sequence[Operator], rows: Sequence[Rows], given: PartitionSet, hosts: int
) -> Placement:
    """Return the places of all operators, and what they cost.

    Args:
        operators: the operators, each after those that it reads.
        rows: the rows of each.
        given: the set that packets are divided by; an empty one stands for packets that are divided
            by chance.
        hosts: the number of hosts.
    """
    places: list[Place] = []
    # Operators share the object of equal sets.
    sets = {id(each.compatible): each.compatible for each in operators}
    fits = {key: is_compatible(each, given) for key, each in sets.items()}
    for operator in operators:
        inputs = [places[number] for number in operator.inputs]
        places.append(_place(operator, inputs, fits=fits[id(operator.compatible)]))
    received = [0.0] * len(operators)
    sent: dict[int, float] = {}
    for number, (operator, where) in enumerate(zip(operators, places, strict=True)):
        match where:
            case Place.SPLIT:
                received[number] = rows[number].partials(hosts)
                sent[number] = received[number]
            case Place.FIRST:
                received[number] = rows[number].first(hosts)
                sent[number] = received[number]
            case Place.CENTRAL:
                for each in operator.inputs:
                    if places[each] is Place.HOSTS:
                        size = _size(operators[each].node, rows[each], operator.node)
                        received[number] += size
                        sent[each] = max(size, sent.get(each, 0.0))
            case Place.HOSTS if operator.is_result and operator.is_root:
                received[number] = rows[number].size
                sent[number] = max(received[number], sent.get(number, 0.0))
    return Placement(given, tuple(places), tuple(received), sum(sent.values()))


def _place(operator: Operator, inputs: Sequence[Place], *, fits: bool) -> Place:
    """Return the place of an operator; ``fits``: its compatible set determines the given one."""
    if any(each is not Place.HOSTS for each in inputs):
        return Place.CENTRAL
    # What looks at one row at a time runs wherever its rows are, however they were divided.
    if operator.compatible is ANY or fits:
        if operator.order is None:
            return Place.HOSTS
        # The first rows of the whole input are known at its end, or are the first to come.
        is_by_epoch = orders_epochs(operator.order, operator.node.schema)
        return Place.FIRST if is_by_epoch else Place.CENTRAL
    return Place.SPLIT if operator.is_splittable else Place.CENTRAL


def _size(node: Node, rows: Rows, reader: Node) -> float:
    """Return the bytes of rows that are sent to ``reader``.

    Of packets, these are only the fields it reads.
    """
    if isinstance(node, Scan | Filter) and (width := packet_width(reader)):
        return rows.number * width
    return rows.size
