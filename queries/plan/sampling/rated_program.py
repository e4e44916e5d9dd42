"""The program of a run whose rates follow the load: rows state their rates where this is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.plan.sampling.moving_samples import moving_samples
from gscope.queries.plan.sampling.row_rates import needs_row_rates, with_component_rates
from gscope.queries.plan.sampling.sampled_rows import CannotMove

if TYPE_CHECKING:
    from gscope.queries.plan.program import Program


def with_row_rates(program: Program) -> Program:
    """Return a program whose rows state their rates where only then a component follows the load.

    A component that keeps every packet for another reason stays as it is.
    """
    for component in program.sampling:
        needed = needs_row_rates(program, component)
        if not needed:
            continue
        try:
            changed = with_component_rates(program, component, needed)
        except CannotMove:
            continue
        if any(set(needed) <= set(sample.lftas) for sample in moving_samples(changed)[0]):
            program = changed
    return program
