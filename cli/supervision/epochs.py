"""The lengths of the epochs of a program, for the progress of a live run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gscope.queries.plan.program import Program

_LEAST_NS = 2_000_000_000
"""Shorter epochs end before a reader could expect it."""


def epoch_lengths_ns(program: Program) -> tuple[int, ...]:
    """Return the distinct lengths of epochs that are whole units of time, such as ``time/60``."""
    # Imported only here: the job starts before the compiler's modules are loaded.
    from gscope.queries.catalog.scalar.clock_units import clock_unit

    epochs = (
        key.expression for lfta in program.lftas for key in lfta.keys if key.name == lfta.epoch
    )
    units = (clock_unit(expression, lambda _: None) for expression in epochs)
    lengths = {unit.grain_ns for unit in units if unit is not None and unit.grain_ns >= _LEAST_NS}
    return tuple(sorted(lengths))
