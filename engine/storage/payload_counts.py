"""Counts of payloads that functions could not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.functions.base import Outcome
from gscope.engine.storage.counts import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping


def payload_counts(outcomes: Mapping[str, Mapping[Outcome, int]]) -> Counts:
    """Return the counts of payloads that were not read, from their outcomes by function."""

    def of(outcome: Outcome) -> dict[str, int]:
        return {name: found[outcome] for name, found in outcomes.items() if found.get(outcome)}

    return Counts(undecodable=of(Outcome.DAMAGED), foreign=of(Outcome.FOREIGN))
