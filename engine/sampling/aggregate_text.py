"""Aggregates of groups in the text of a kernel: arrays by group, to which tuples are added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.sampling.expression_text import Term, add, less
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.engine.sampling.expression_text import KernelText
    from gscope.queries.expressions.expressions import Column
    from gscope.queries.plan.logical import AggregateCall
    from gscope.queries.plan.sampling_operator import Sampling


@dataclass(frozen=True, slots=True)
class AggregateText:
    """One aggregate of a kernel.

    Its arrays end in its number: ``a`` is its value, ``b`` whether there is one. Where a sum of
    integers may exceed 64 bits, ``c`` counts how often it has.

    Attributes:
        number: its number among the aggregates.
        meant: the aggregate.
        is_wide: whether it is a sum of integers that may exceed 64 bits.
    """

    number: int
    meant: AggregateCall
    is_wide: bool

    def arrays(self) -> list[str]:
        """Return the names of the arrays that the kernel takes for it."""
        return [f"{part}{self.number}" for part in ("abc" if self.is_wide else "ab")]

    def value(self, group: str) -> Term:
        """Return its value for a group."""
        valid = f"b{self.number}[{group}]" if self.meant.is_nullable else None
        return Term(f"a{self.number}[{group}]", valid)

    def insert(self, out: KernelText) -> None:
        """Append its start in the new group ``g``."""
        out.line(f"a{self.number}[g] = 0")
        out.line(f"b{self.number}[g] = False")
        if self.is_wide:
            out.line(f"c{self.number}[g] = 0")

    def add_tuple(self, out: KernelText, leaf: Callable[[Column], Term]) -> None:
        """Append what the tuple ``i`` adds to the group ``g``.

        ``leaf`` is a column of the tuple.
        """
        total, has = f"a{self.number}[g]", f"b{self.number}[g]"
        if not self.meant.arguments:
            out.line(f"{total} += 1")
            return
        (argument,) = self.meant.arguments
        term = out.expression(argument, leaf)
        is_float = argument.type is GsqlType.FLOAT
        out.line(f"if {term.valid or 'True'}:")
        with out.indented():
            match self.meant.function:
                case "count":
                    out.line(f"{total} += 1")
                case "sum":
                    carry = f"c{self.number}[g]" if self.is_wide else None
                    add(out, total, term.value, argument.type, carry)
                case "first":
                    out.line(f"if not {has}:")
                    out.line(f"    {total} = {term.value}")
                case "last":
                    out.line(f"{total} = {term.value}")
                case function:
                    pair = (term.value, total) if function == "min" else (total, term.value)
                    out.line(f"if not {has} or {less(*pair, is_float=is_float)}:")
                    out.line(f"    {total} = {term.value}")
            out.line(f"{has} = True")

    def count_wrapped(self, out: KernelText) -> None:
        """Append what counts it at the end of the group ``c`` if it has exceeded 64 bits."""
        if self.is_wide:
            out.line(f"if c{self.number}[c] != 0:")
            out.line("    wrapped[0] += 1")


def aggregate_texts(sampling: Sampling) -> list[AggregateText]:
    """Return the aggregates of a kernel."""
    return [
        AggregateText(number, each, each.name in sampling.wide_sums)
        for number, each in enumerate(sampling.aggregates)
    ]
