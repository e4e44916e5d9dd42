"""Superaggregates in the text of a kernel: what each tuple and group adds and takes away.

A group that is removed takes its part out of sums and counts. Extremes and k-th smallest values
that may have changed are computed from the live groups when they are next read. So are sums of
FLOAT that are infinite or NaN, from which nothing can be subtracted; all sums of FLOAT are computed
again after each cleaning, so that no rounding remains of groups that have left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.sampling.expression_text import Term, add, less
from gscope.queries.catalog.sampling.superaggregates import (
    COUNT,
    COUNT_DISTINCT,
    KTH_SMALLEST,
    MAX,
    MIN,
    SUM,
)
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.engine.sampling.expression_text import KernelText
    from gscope.queries.plan.sampling_operator import Sampling, Superaggregate

_BY_TUPLE = (SUM, COUNT, MAX, MIN)
"""The superaggregates to which every tuple adds."""


@dataclass(frozen=True, slots=True)
class SuperaggregateText:
    """One superaggregate of a kernel.

    Its variables end in its number: ``u`` is its value for the supergroup, ``w`` the number of
    values in it; the arrays ``p`` and ``q`` hold the parts of each group. Where a sum of integers
    may exceed 64 bits, ``x`` and the array ``r`` count how often these have.

    Attributes:
        number: its number among the superaggregates.
        meant: the superaggregate.
        is_wide: whether it is a sum of integers that may exceed 64 bits.
    """

    number: int
    meant: Superaggregate
    is_wide: bool = False

    def arrays(self) -> list[str]:
        """Return the names of the arrays that the kernel takes for it."""
        n = self.number
        kept = [f"kept{n}", f"keptw{n}", *([f"keptx{n}"] if self.is_wide else [])]
        values = self.arrays_by_group()
        if self.meant.function == KTH_SMALLEST:
            values = [f"p{n}"]
        elif self.meant.function == COUNT_DISTINCT and not self._is_count_of_groups:
            values = [f"p{n}", f"q{n}"]
        return [*values, f"out{n}", f"outn{n}", *kept]

    def arrays_by_group(self) -> list[str]:
        """Return the names of those that hold the parts of groups."""
        if self.meant.function not in _BY_TUPLE:
            return []
        return [f"{part}{self.number}" for part in ("pqr" if self.is_wide else "pq")]

    def arrays_by_supergroup(self) -> list[str]:
        """Return the names of those that keep values for the next part of a window."""
        if self.meant.function not in (SUM, COUNT):
            return []
        return [f"{kept}{self.number}" for kept in ("kept", "keptw", *(["keptx"] * self.is_wide))]

    @property
    def _is_count_of_groups(self) -> bool:
        return self.meant.function == COUNT_DISTINCT and self.meant.argument is None

    @property
    def is_float_sum(self) -> bool:
        """Whether it is a sum of FLOAT, which rounds."""
        return self.meant.function == SUM and self.meant.type is GsqlType.FLOAT

    @property
    def _zero(self) -> str:
        return "0.0" if self.meant.type is GsqlType.FLOAT else "0"

    def _value(self, row: str) -> Term:
        assert self.meant.argument is not None
        bare = self.meant.argument.name.lstrip("$")
        value = f"v_{bare}[{row}]"
        tests = [f"n_{bare}[{row}]"] if self.meant.argument.is_nullable else []
        if self.meant.function == KTH_SMALLEST and self.meant.type is GsqlType.FLOAT:
            tests.append(f"{value} == {value}")  # NaN does not count
        return Term(value, " and ".join(tests) or None)

    def begin(self, out: KernelText) -> None:
        """Append its start at the first tuple of a supergroup."""
        n = self.number
        match self.meant.function:
            case "sum" | "count":
                out.line(f"u{n} = {self._zero}")
                out.line(f"w{n} = 0")
                if self.is_float_sum:
                    out.line(f"stale{n} = False")
                if self.is_wide:
                    out.line(f"x{n} = 0")
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
                if self.is_wide:
                    out.line(f"r{n}[g] = 0")
            case "max" | "min":
                out.line(f"q{n}[g] = False")
            case "kth_smallest_value":
                value = self._value("i")
                out.line(f"if {value.valid or 'True'} and not stale{n}:")
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
                if self.is_wide:
                    out.line(f"x{n} = keptx{n}[s]")
            case "max" | "min" | "kth_smallest_value":
                out.line(f"stale{n} = True")

    def keep(self, out: KernelText) -> None:
        """Append what keeps its value for the next part of the window."""
        n = self.number
        if self.meant.function in (SUM, COUNT):
            out.line(f"kept{n}[s] = u{n}")
            out.line(f"keptw{n}[s] = w{n}")
            if self.is_wide:
                out.line(f"keptx{n}[s] = x{n}")

    def add_tuple(self, out: KernelText) -> None:
        """Append what the tuple ``i`` of the group ``g`` adds."""
        n, function = self.number, self.meant.function
        if function not in _BY_TUPLE:
            return
        value = Term("1") if self.meant.argument is None else self._value("i")
        out.line(f"if {value.valid or 'True'}:")
        with out.indented():
            if function == COUNT:
                out.line(f"p{n}[g] += 1")
                out.line(f"u{n} += 1")
            elif function == SUM:
                kind = self.meant.type
                add(out, f"p{n}[g]", value.value, kind, f"r{n}[g]" if self.is_wide else None)
                add(out, f"u{n}", value.value, kind, f"x{n}" if self.is_wide else None)
                out.line(f"q{n}[g] += 1")
                out.line(f"w{n} += 1")
            else:
                self._add_extreme(out, value.value)

    def _add_extreme(self, out: KernelText, value: str) -> None:
        n, is_float = self.number, self.meant.type is GsqlType.FLOAT

        def better(a: str, b: str) -> str:
            pair = (b, a) if self.meant.function == MAX else (a, b)
            return less(*pair, is_float=is_float)

        out.line(f"if not q{n}[g] or {better(value, f'p{n}[g]')}:")
        out.line(f"    p{n}[g] = {value}")
        out.line(f"    q{n}[g] = True")
        out.line(f"    if not stale{n} and (u{n} < 0 or {better(f'p{n}[g]', f'p{n}[u{n}]')}):")
        out.line(f"        u{n} = g")

    def remove(self, out: KernelText) -> None:
        """Append what the group ``c``, which is removed, takes away."""
        n = self.number
        match self.meant.function:
            case "sum" | "count":
                self._subtract(out)
                out.line(f"w{n} -= q{n}[c]")
            case "max" | "min":
                out.line(f"if u{n} == c:")
                out.line(f"    stale{n} = True")
            case "kth_smallest_value":
                value = self._value("first[c]")
                is_among = f"(w{n} < len(p{n}) or {value.value} <= p{n}[w{n} - 1])"
                out.line(f"if {value.valid or 'True'} and {is_among}:")
                out.line(f"    stale{n} = True")
            case "count_distinct" if not self._is_count_of_groups:
                self.forget(out)

    def _subtract(self, out: KernelText) -> None:
        """Append what takes the sum or count of the group ``c`` out of that of the supergroup."""
        n = self.number
        if self.is_float_sum:
            out.line(f"if u{n} - u{n} == 0.0:")
            out.line(f"    u{n} -= p{n}[c]")
            out.line("else:")
            out.line(f"    stale{n} = True")
            return
        out.line(f"left = wrap_sub(u{n}, p{n}[c])")
        if self.is_wide:
            out.line(f"x{n} -= r{n}[c] + carried(left, p{n}[c], u{n})")
        out.line(f"u{n} = left")

    def settle(self, out: KernelText) -> None:
        """Append the sum of FLOAT of the groups that a pass has left."""
        out.line(f"u{self.number} = sum_of_groups(head, following, p{self.number})")
        out.line(f"stale{self.number} = False")

    def count_wrapped(self, out: KernelText) -> None:
        """Append what counts it at the end of its supergroup if it has exceeded 64 bits."""
        if self.is_wide:
            out.line(f"if x{self.number} != 0:")
            out.line("    wrapped[0] += 1")

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
                if self.is_float_sum:
                    out.line(f"if stale{n}:")
                    with out.indented():
                        self.settle(out)
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


def superaggregate_texts(sampling: Sampling) -> list[SuperaggregateText]:
    """Return the superaggregates of a kernel."""
    return [
        SuperaggregateText(number, each, is_wide=each.name in sampling.wide_sums)
        for number, each in enumerate(sampling.superaggregates)
    ]
