"""Superaggregates in the text of a kernel: what each tuple and group adds and takes away.

A group that is removed takes its part out of sums and counts. Extremes and k-th smallest values
that may have changed are computed from the live groups when they are next read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gscope.engine.sampling.expression_text import Term
from gscope.queries.catalog.sampling.superaggregates import (
    COUNT,
    COUNT_DISTINCT,
    KTH_SMALLEST,
    MAX,
    MIN,
    SUM,
)
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.engine.sampling.expression_text import KernelText
    from gscope.queries.plan.sampling_operator import Superaggregate

_BY_TUPLE = (SUM, COUNT, MAX, MIN)
"""The superaggregates to which every tuple adds."""


@dataclass(frozen=True, slots=True)
class SuperaggregateText:
    """One superaggregate of a kernel.

    Its variables end in its number: ``u`` is its value for the supergroup, ``w`` the number of
    values in it; the arrays ``p`` and ``q`` hold the parts of each group.
    """

    number: int
    meant: Superaggregate

    def arrays(self, number: int) -> list[str]:
        """Return the names of the arrays that the kernel takes for it."""
        assert number == self.number
        function = self.meant.function
        if function in _BY_TUPLE:
            return [f"p{number}", f"q{number}"]
        if function == KTH_SMALLEST:
            return [f"p{number}"]
        if function == COUNT_DISTINCT and self.meant.argument is not None:
            return [f"p{number}", f"q{number}"]
        return []

    @property
    def _is_count_of_groups(self) -> bool:
        return self.meant.function == COUNT_DISTINCT and self.meant.argument is None

    @property
    def _zero(self) -> str:
        return "0.0" if self.meant.type is GsqlType.FLOAT else "0"

    def _value(self, row: str) -> Term:
        assert self.meant.argument is not None
        bare = self.meant.argument.name.lstrip("$")
        is_null = self.meant.argument.is_nullable or self.meant.function == KTH_SMALLEST
        return Term(f"v_{bare}[{row}]", f"n_{bare}[{row}]" if is_null else None)

    def begin(self, out: KernelText) -> None:
        """Append its start at the first tuple of a supergroup."""
        n = self.number
        match self.meant.function:
            case "sum" | "count":
                out.line(f"u{n} = {self._zero}")
                out.line(f"w{n} = 0")
            case "max" | "min":
                out.line(f"u{n} = -1")
                out.line(f"stale{n} = False")
            case "kth_smallest_value":
                out.line(f"w{n} = 0")
                out.line(f"stale{n} = False")
            case "count_distinct" if not self._is_count_of_groups:
                out.line(f"w{n} = 0")

    def insert(self, out: KernelText) -> None:
        """Append what the new group ``g`` adds."""
        n = self.number
        match self.meant.function:
            case "sum" | "count":
                out.line(f"p{n}[g] = {self._zero}")
                out.line(f"q{n}[g] = 0")
            case "max" | "min":
                out.line(f"q{n}[g] = False")
            case "kth_smallest_value":
                value = self._value("i")
                out.line(f"if {value.valid} and not stale{n}:")
                out.line(f"    w{n} = kth_insert(p{n}, w{n}, {value.value})")
            case "count_distinct" if not self._is_count_of_groups:
                out.line(f"if q{n}[i] >= 0:")
                out.line(f"    p{n}[q{n}[i]] += 1")
                out.line(f"    if p{n}[q{n}[i]] == 1:")
                out.line(f"        w{n} += 1")

    def resume_group(self, out: KernelText) -> None:
        """Append what the group ``g`` adds, which lives since a part of the window before."""
        if self.meant.function == COUNT_DISTINCT:
            self.insert(out)

    def resume(self, out: KernelText) -> None:
        """Append the value that it had after the part of the window before."""
        n = self.number
        match self.meant.function:
            case "sum" | "count":
                out.line(f"u{n} = kept{n}[s]")
                out.line(f"w{n} = keptw{n}[s]")
            case "max" | "min" | "kth_smallest_value":
                out.line(f"stale{n} = True")

    def keep(self, out: KernelText) -> None:
        """Append what keeps its value for the next part of the window."""
        n = self.number
        if self.meant.function in (SUM, COUNT):
            out.line(f"kept{n}[s] = u{n}")
            out.line(f"keptw{n}[s] = w{n}")

    def add_tuple(self, out: KernelText) -> None:
        """Append what the tuple ``i`` of the group ``g`` adds."""
        n, function = self.number, self.meant.function
        if function not in _BY_TUPLE:
            return
        value = Term("1") if self.meant.argument is None else self._value("i")
        out.line(f"if {value.valid or 'True'}:")
        if function == COUNT:
            out.line(f"    p{n}[g] += 1")
            out.line(f"    u{n} += 1")
        elif function == SUM:
            out.line(f"    p{n}[g] += {value.value}")
            out.line(f"    u{n} += {value.value}")
            out.line(f"    q{n}[g] += 1")
            out.line(f"    w{n} += 1")
        else:
            sign = ">" if function == MAX else "<"
            out.line(f"    if not q{n}[g] or {value.value} {sign} p{n}[g]:")
            out.line(f"        p{n}[g] = {value.value}")
            out.line(f"        q{n}[g] = True")
            out.line(f"        if not stale{n} and (u{n} < 0 or p{n}[g] {sign} p{n}[u{n}]):")
            out.line(f"            u{n} = g")

    def remove(self, out: KernelText) -> None:
        """Append what the group ``c``, which is removed, takes away."""
        n = self.number
        match self.meant.function:
            case "sum" | "count":
                out.line(f"u{n} -= p{n}[c]")
                out.line(f"w{n} -= q{n}[c]")
            case "max" | "min":
                out.line(f"if u{n} == c:")
                out.line(f"    stale{n} = True")
            case "kth_smallest_value":
                value = self._value("first[c]")
                out.line(
                    f"if {value.valid} and (w{n} < len(p{n}) or {value.value} <= p{n}[w{n} - 1]):"
                )
                out.line(f"    stale{n} = True")
            case "count_distinct" if not self._is_count_of_groups:
                self.forget(out)

    def forget(self, out: KernelText) -> None:
        """Append what the group ``c`` leaves behind in arrays that all supergroups share."""
        n = self.number
        if self.meant.function == COUNT_DISTINCT and not self._is_count_of_groups:
            out.line(f"if q{n}[first[c]] >= 0:")
            out.line(f"    p{n}[q{n}[first[c]]] -= 1")
            out.line(f"    if p{n}[q{n}[first[c]]] == 0:")
            out.line(f"        w{n} -= 1")

    def read(self, out: KernelText) -> Term:
        """Append what its value needs now, and return it."""
        n = self.number
        match self.meant.function:
            case "count":
                return Term(f"u{n}")
            case "sum":
                return Term(f"u{n}", f"w{n} > 0")
            case "max" | "min":
                sign = 1 if self.meant.function == MAX else -1
                out.line(f"if stale{n}:")
                out.line(f"    u{n} = extreme_group(head, following, p{n}, q{n}, {sign})")
                out.line(f"    stale{n} = False")
                return Term(f"p{n}[max(u{n}, 0)]", f"u{n} >= 0")
            case "kth_smallest_value":
                assert self.meant.argument is not None
                bare = self.meant.argument.name.lstrip("$")
                out.line(f"if stale{n}:")
                out.line(f"    w{n} = kth_refill(p{n}, head, following, first, v_{bare}, n_{bare})")
                out.line(f"    stale{n} = False")
                most = "np.inf" if self.meant.type is GsqlType.FLOAT else str((1 << 63) - 1)
                return out.keep(Term(f"p{n}[w{n} - 1] if w{n} == len(p{n}) else {most}"))
            case "first":
                value = self._value("first[max(head, 0)]")
                tests = ["head >= 0", *([value.valid] if value.valid else [])]
                return Term(value.value, f"({' and '.join(tests)})")
            case _ if self._is_count_of_groups:
                return Term("live")
            case _:
                return Term(f"w{n}")
