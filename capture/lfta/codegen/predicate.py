"""Predicates: their conjuncts, those that LFTAs share, and tests that reject packets early."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.lower import lower
from gscope.capture.lfta.codegen.names import BATCH_PARAMETERS, packet_loop
from gscope.capture.lfta.codegen.scope import Literals, Scope
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import Call, Expression, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.lfta.codegen.scope import Variant
    from gscope.queries.plan.program import Lfta

MAX_SHARED = 62
_CHEAP = 20
"""Cost (in additions) up to which a predicate is computed for every packet."""


def conjuncts(expression: Expression | None) -> tuple[Expression, ...]:
    """Return the terms that must all be true, in order."""
    if expression is None:
        return ()
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(term for argument in expression.arguments for term in conjuncts(argument))
    return (expression,)


def shared_predicates(lftas: Sequence[Lfta]) -> tuple[Expression, ...]:
    """Return the cheap conjuncts that LFTAs share: a bit each of a packet's signature."""
    uses = Counter(term for lfta in lftas for term in dict.fromkeys(conjuncts(lfta.predicate)))
    shared = [term for term, count in uses.items() if count > 1 and cost(term) <= _CHEAP]
    return tuple(shared[:MAX_SHARED])


def cost(expression: Expression) -> int:
    """Return the cost of an expression in additions."""
    return sum(FUNCTIONS[part.function].cost for part in walk(expression) if isinstance(part, Call))


def prefilter_source(
    shared: Sequence[Expression], literals: Literals, variants: Sequence[Variant]
) -> list[str]:
    """Return the function that writes the signature of each packet of a batch."""
    lines = ["@kernel_part", f"def prefilter({BATCH_PARAMETERS}):"]
    lines.append(f'    """Bits: {len(shared)} predicates that several LFTAs share."""')
    for variant in variants:
        scope = Scope(variant, literals, indent=2)
        bits = [(scope.is_true(lower(scope, term)), n) for n, term in enumerate(shared)]
        code = " | ".join(f"((1 if {bit} else 0) << {n})" for bit, n in bits if bit != "False")
        scope.emit(f"st64(memory.signatures + 8 * i, {code or '0'})")
        lines += [*packet_loop(variant), *scope.lines]
    return lines


def passes(
    scope: Scope, predicate: Expression | None, shared: Sequence[Expression], leave: str
) -> bool:
    """Add the tests of a predicate; ``leave`` is the statement for a packet that fails.

    Returns:
        False if no packet of the scope's variant can pass; discard the scope then.
    """
    terms = conjuncts(predicate)
    mask = sum(1 << n for n, term in enumerate(shared) if term in terms)
    if mask:
        scope.emit(f"if ld64(memory.signatures + 8 * i) & {mask} != {mask}:")
        scope.emit(f"    {leave}")
    for term in terms:
        # Terms of the signature need no code, only a check whether they can be true at all.
        place = Scope(scope.variant, scope.literals, indent=0) if term in shared else scope
        lowered = lower(place, term)
        if lowered.is_always_null or (lowered.is_literal and not lowered.literal):
            return False
        if place is scope and not lowered.is_literal:
            scope.emit(f"if not {scope.is_true(lowered)}:")
            scope.emit(f"    {leave}")
    return True
