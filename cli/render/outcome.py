"""How a run went, as far as the command line tells of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        capture: the capture daemon's ``summary`` event.
        phases: seconds since the start of the command by what had been reached then.
        job_phases: the same of the HFTA job by its own account, since its own start.
        late_tuples: rows that came to the HFTA job below a watermark and are in no answer, by query.
        shed_tuples: rows that the HFTA job had no room to keep, by the query that was to read them.
        undecodable: payloads that a function of a query could not read, by function.
        wrapped_sums: sums of integers that left 64 bits and wrapped, by query.
        restarts: how often a process was started again, by its name.
        signal: that ended the input, 0 for none.
    """

    capture: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    job_phases: dict[str, float] = field(default_factory=dict)
    late_tuples: dict[str, int] = field(default_factory=dict)
    shed_tuples: dict[str, int] = field(default_factory=dict)
    undecodable: dict[str, int] = field(default_factory=dict)
    wrapped_sums: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    signal: int = 0
