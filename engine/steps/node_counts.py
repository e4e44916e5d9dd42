"""What each node has read and given: counted for each message and each step, never for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.engine.operators.base import pending_input
from gscope.queries.plan.program import MergeNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gscope.engine.operators.base import Operator


@dataclass(frozen=True, slots=True)
class NodeRun:
    """What the evaluation of one step did for one node.

    Attributes:
        query: the node.
        tuples: the rows that it gave; None if Spark SQL passed them on uncounted.
        cpu_ns: the CPU time of its Python tasks in ns, without that of Java.
        is_sql: whether Spark SQL evaluated the node or a part of it.
    """

    query: str
    tuples: int | None
    cpu_ns: int = 0
    is_sql: bool = False


@dataclass(slots=True)
class NodeTotal:
    """The counts of one node since the run began.

    Attributes:
        tuples_out: the rows that it gave; None once those of a step are unknown.
        cpu_ns: the CPU time of its Python tasks in ns, without that of Java.
        sql_steps: the number of steps in which Spark SQL evaluated it or a part of it.
    """

    tuples_out: int | None = 0
    cpu_ns: int = 0
    sql_steps: int = 0

    def add(self, run: NodeRun) -> None:
        """Add what one step did."""
        known = self.tuples_out is not None and run.tuples is not None
        self.tuples_out = (self.tuples_out or 0) + (run.tuples or 0) if known else None
        self.cpu_ns += run.cpu_ns
        self.sql_steps += run.is_sql


class NodeTotals:
    """The counts of all nodes of a program.

    Args:
        operators: the operators, by query.
        shed: the rows that were shed before their operator read them, by query.
    """

    def __init__(self, operators: Mapping[str, Operator], shed: Mapping[str, int]) -> None:
        self._operators = operators
        self._shed = shed
        self._totals: dict[str, NodeTotal] = {}

    def on_evaluated(self, runs: Iterable[NodeRun]) -> None:
        """Add what a step did."""
        for run in runs:
            self.total(run.query).add(run)

    def total(self, query: str) -> NodeTotal:
        """Return the counts of a node."""
        return self._totals.setdefault(query, NodeTotal())

    def tuples_in(self, query: str) -> int | None:
        """Return the rows that have reached a node, read or waiting; None if unknown.

        A row that two of its sides read counts twice.
        """
        ports = [port for side in self._operators[query].sides for port in side.ports.values()]
        reached = [
            self.tuples_out(port.name) if port.name in self._operators else port.tuples_in
            for port in ports
        ]
        known = [each for each in reached if each is not None]
        return sum(known) if len(known) == len(reached) else None

    def tuples_read(self, query: str) -> int | None:
        """Return the rows that a node has read: those that reached it without those that wait.

        Rows that were late or shed are not read. A batch that is partially read waits as a whole.
        """
        return self._read_of(query, self.tuples_in(query))

    def _read_of(self, query: str, reached: int | None) -> int | None:
        """Return how many of the rows that have ``reached`` a node it has read."""
        if reached is None:
            return None
        operator = self._operators[query]
        unread = pending_input(operator).tuples + operator.late_tuples + self._shed.get(query, 0)
        return max(0, reached - unread)

    def tuples_out(self, query: str) -> int | None:
        """Return the rows that a node has given; None if unknown. A merge gives what it reads."""
        if self._is_merge(query):
            return self.tuples_read(query)
        return self.total(query).tuples_out

    def _is_merge(self, query: str) -> bool:
        return isinstance(self._operators[query].node, MergeNode)

    def fields(self, query: str) -> dict[str, int | None]:
        """Return the counts of a node for the job's statistics."""
        total, reached = self.total(query), self.tuples_in(query)
        read = self._read_of(query, reached)
        return {
            "tuples_in_total": reached,
            "tuples_read_total": read,
            "tuples_out_total": read if self._is_merge(query) else total.tuples_out,
            "cpu_ns": total.cpu_ns,
            "sql_steps_total": total.sql_steps,
        }

    def snapshot(self, query: str) -> dict[str, Any]:
        """Return the counts of a node as plain JSON values, for a commit."""
        total = self.total(query)
        return {
            "tuples_out": total.tuples_out,
            "cpu_ns": total.cpu_ns,
            "sql_steps": total.sql_steps,
        }

    def restore(self, query: str, saved: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._totals[query] = NodeTotal(**saved)
