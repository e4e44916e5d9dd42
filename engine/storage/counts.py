"""Counts that the evaluation of steps keeps besides rows."""

from __future__ import annotations

from dataclasses import field

from gscope.records import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one task, of one attempt, or of a run.

    Attributes:
        undecodable: payloads of a function's protocol that it could not decode, by function.
        wrapped_sums: sums of integers that exceeded 64 bits, by the query (or part of one) that
            computes them. Every group counts, even one that HAVING drops.
        foreign: payloads that do not begin a message of a function's protocol, by function.
        crowded_out: tuples that a sampling operator left out because their supergroup was full, by
            query.
        transferred_bytes: what executors of a cluster have fetched, returned and exchanged, by
            kind (``TrafficMeter``); those that are 0 as well. Empty without a cluster.
    """

    undecodable: dict[str, int] = field(default_factory=dict)
    wrapped_sums: dict[str, int] = field(default_factory=dict)
    foreign: dict[str, int] = field(default_factory=dict)
    crowded_out: dict[str, int] = field(default_factory=dict)
    transferred_bytes: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            _added(self.undecodable, other.undecodable),
            _added(self.wrapped_sums, other.wrapped_sums),
            _added(self.foreign, other.foreign),
            _added(self.crowded_out, other.crowded_out),
            _added(self.transferred_bytes, other.transferred_bytes),
        )

    def add_wrapped_sums(self, query: str, count: int) -> None:
        """Count sums of ``query`` that exceeded 64 bits."""
        if count:
            self.wrapped_sums[query] = self.wrapped_sums.get(query, 0) + count

    def add_crowded_out(self, query: str, count: int) -> None:
        """Count tuples that the sampling operator of ``query`` has left out."""
        if count:
            self.crowded_out[query] = self.crowded_out.get(query, 0) + count


def _added(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}
