"""The kernel of a sampling operator as Python text: a function that folds tuple after tuple.

The same text is compiled by numba and, for few tuples and for functions of users, run by Python.
Groups are numbers, so that the kernel needs no hash table: the caller has numbered the keys of all
tuples. The live groups of a supergroup are a list in the order in which they were inserted.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gscope.engine.sampling import samplers
from gscope.engine.sampling.expression_text import (
    KernelText,
    Term,
    is_true,
    less,
    zero,
)
from gscope.engine.sampling.superaggregate_text import SuperaggregateText
from gscope.queries.catalog.sampling.stateful import LIBRARY, STATEFUL
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.expressions.expressions import Call, Column
    from gscope.queries.plan.logical import AggregateCall
    from gscope.queries.plan.sampling_operator import Condition, Sampling, StatefulCall

_FIXED = (
    "starts",
    "before",
    "base",
    "state",
    "group",
    "alive",
    "first",
    "following",
    "previous",
    "marks",
    "max_groups",
    "left_out",
    "answers",
    "resumed",
    "skip",
    "ends",
    "living",
    "lived_until",
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """The text of a kernel, and what it needs.

    Attributes:
        text: a module with the function ``fold``.
        parameters: the names of its parameters, in order.
        states: the states that its functions share, each with its place in a row of states.
        slots: the length of a row of states.
        externals: the calls that the catalog evaluates for it.
        user_functions: the functions of users that it calls.
    """

    text: str
    parameters: tuple[str, ...]
    states: tuple[tuple[str, int], ...]
    slots: int
    externals: tuple[Call, ...]
    user_functions: tuple[str, ...]

    @property
    def needs_python(self) -> bool:
        """Whether numba cannot compile it."""
        return bool(self.externals or self.user_functions)


def kernel_of(sampling: Sampling) -> Kernel:
    """Return the kernel of ``sampling``."""
    return _Writer(sampling).kernel()


@dataclass(slots=True)
class _Writer:
    """Writes one kernel.

    Attributes:
        sampling: the clauses.
        out: the text so far.
        states: the states of library functions, by the place of each.
    """

    sampling: Sampling
    out: KernelText = field(default_factory=KernelText)
    states: dict[str, int] = field(default_factory=dict)
    slots: int = 0
    users: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=lambda: list(_FIXED))

    def kernel(self) -> Kernel:
        functions = sorted(self.sampling.functions)
        for name in functions:
            if name not in LIBRARY:
                self.users.append(name)
                continue
            state = LIBRARY[name].state
            if state not in self.states:
                self.states[state] = self.slots
                self.slots += samplers.SLOTS[state]
        for value in self._value_names():
            self.parameters += [f"v_{value}", f"n_{value}"]
        for number, _ in enumerate(self.sampling.aggregates):
            self.parameters += [f"a{number}", f"b{number}"]
        for number, each in enumerate(self._supers()):
            self.parameters += each.arrays(number)
            self.parameters += [f"out{number}", f"outn{number}", f"kept{number}", f"keptw{number}"]
        for number, _ in enumerate(self.sampling.selected):
            self.parameters += [f"sel{number}", f"seln{number}"]
        self._body()
        parameters = (
            [*self.parameters, "external", "user", "codes", "objects"]
            if self._is_slow
            else self.parameters
        )
        head = f"def fold({', '.join(parameters)}):"
        text = "\n".join([head, *self.out.lines, ""])
        return Kernel(
            _library_text() + "\n\n" + text,
            tuple(parameters),
            tuple(self.states.items()),
            max(1, self.slots),
            tuple(self.out.externals),
            tuple(self.users),
        )

    @property
    def _is_slow(self) -> bool:
        return bool(self.users or self.out.externals)

    def _user_states(self) -> list[str]:
        return list(dict.fromkeys(STATEFUL[name].state for name in self.users))

    def _value_names(self) -> list[str]:
        """Return the names of values that the kernel reads, without their ``$``."""
        names = [value.name for value in self.sampling.values]
        if any(
            s.argument is not None and s.argument.name == "$random"
            for s in self.sampling.superaggregates
        ):
            names.append("$random")
        return [name.lstrip("$") for name in names]

    def _supers(self) -> list[SuperaggregateText]:
        return [SuperaggregateText(n, each) for n, each in enumerate(self.sampling.superaggregates)]

    # ------------------------------------------------------------------------------ the body

    def _body(self) -> None:
        out = self.out
        out.line("answered = 0")
        out.line("lived = 0")
        out.line("for s in range(len(before)):")
        with _Indented(out):
            self._begin_supergroup()
            out.line("for i in range(starts[s] + skip[s], starts[s + 1]):")
            with _Indented(out):
                self._tuple()
            self._leave_open()
            self._end_supergroup()
        out.line("return answered")

    def _begin_supergroup(self) -> None:
        out = self.out
        for state in self._user_states():
            own = f"objects[base + s, {state!r}]"
            out.line(f"earlier = objects.get((before[s], {state!r})) if before[s] >= 0 else None")
            out.line("if resumed[s]:")
            out.line(f"    {own} = earlier")
            out.line("else:")
            out.line(f"    {own} = codes[{state!r}].begin(earlier)")
        for state, place in self.states.items():
            end = place + samplers.SLOTS[state]
            out.line(f"{state} = state[base + s, {place}:{end}]")
            out.line("if resumed[s]:")
            out.line(f"    {state}[:] = state[before[s], {place}:{end}]")
            out.line("elif before[s] < 0:")
            out.line(f"    init_{state}({state})")
            out.line("else:")
            out.line(f"    next_{state}({state}, state[before[s], {place}:{end}])")
        out.line("head = -1")
        out.line("tail = -1")
        out.line("live = 0")
        for each in self._supers():
            each.begin(out)
        out.line("if resumed[s]:")
        with _Indented(out):
            # Behind the first row, which is there in any case, are those of the live groups.
            out.line("for i in range(starts[s] + 1, starts[s] + skip[s]):")
            with _Indented(out):
                out.line("g = group[i]")
                self._link()
                for each in self._supers():
                    each.resume_group(out)
            for each in self._supers():
                each.resume(out)

    def _leave_open(self) -> None:
        """Append what is kept of a supergroup whose window goes on."""
        out = self.out
        out.line("if not ends[s]:")
        with _Indented(out):
            for each in self._supers():
                each.keep(out)
            out.line("c = head")
            out.line("while c >= 0:")
            with _Indented(out):
                out.line("living[lived] = c")
                out.line("lived += 1")
                for each in self._supers():
                    each.forget(out)
                out.line("c = following[c]")
            out.line("lived_until[s] = lived")
            out.line("continue")
        out.line("lived_until[s] = lived")

    def _tuple(self) -> None:
        out, sampling = self.out, self.sampling
        out.line("g = group[i]")
        for condition in sampling.where:
            out.line(f"if not {self._test(condition, self._of_tuple)}:")
            out.line("    continue")
        out.line("if not alive[g]:")
        with _Indented(out):
            out.line("if live >= max_groups:")
            out.line("    left_out[0] += 1")
            out.line("    continue")
            self._insert()
        for each in self._supers():
            each.add_tuple(out)
        for call in sampling.updates:
            self._call(call, self._of_tuple, "g")
        for number, aggregate in enumerate(sampling.aggregates):
            self._update(number, aggregate)
        if sampling.cleaning_when is not None:
            assert sampling.cleaning_by is not None
            out.line(f"if {self._test(sampling.cleaning_when, self._of_tuple)}:")
            with _Indented(out):
                self._thin(sampling.cleaning_by)

    def _insert(self) -> None:
        out = self.out
        self._link()
        out.line("marks[g] = 0.0")
        for number, _ in enumerate(self.sampling.aggregates):
            out.line(f"a{number}[g] = 0")
            out.line(f"b{number}[g] = False")
        for each in self._supers():
            each.insert(out)

    def _link(self) -> None:
        """Append the lines that make ``g`` the last live group, with ``i`` as its first tuple."""
        out = self.out
        out.line("alive[g] = True")
        out.line("first[g] = i")
        out.line("previous[g] = tail")
        out.line("following[g] = -1")
        out.line("if tail >= 0:")
        out.line("    following[tail] = g")
        out.line("else:")
        out.line("    head = g")
        out.line("tail = g")
        out.line("live += 1")

    def _update(self, number: int, aggregate: AggregateCall) -> None:
        """Append the update of an aggregate of the group ``g`` by the tuple ``i``."""
        out = self.out
        total, has = f"a{number}[g]", f"b{number}[g]"
        if not aggregate.arguments:
            out.line(f"{total} += 1")
            return
        (argument,) = aggregate.arguments
        term = out.expression(argument, self._of_tuple)
        is_float = argument.type is GsqlType.FLOAT
        out.line(f"if {term.valid or 'True'}:")
        with _Indented(out):
            match aggregate.function:
                case "count":
                    out.line(f"{total} += 1")
                case "sum":
                    out.line(f"{total} += {term.value}")
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

    def _thin(self, condition: Condition) -> None:
        """Append a pass over the live groups that removes those for which ``condition`` fails."""
        out = self.out
        out.line("c = head")
        out.line("while c >= 0:")
        with _Indented(out):
            out.line("after = following[c]")
            out.line(f"if not {self._test(condition, self._of_group)}:")
            with _Indented(out):
                self._remove()
            out.line("c = after")

    def _remove(self) -> None:
        out = self.out
        out.line("if previous[c] >= 0:")
        out.line("    following[previous[c]] = following[c]")
        out.line("else:")
        out.line("    head = following[c]")
        out.line("if following[c] >= 0:")
        out.line("    previous[following[c]] = previous[c]")
        out.line("else:")
        out.line("    tail = previous[c]")
        out.line("alive[c] = False")
        out.line("live -= 1")
        for each in self._supers():
            each.remove(out)

    def _end_supergroup(self) -> None:
        out, sampling = self.out, self.sampling
        for state in self.states:
            out.line(f"final_{state}({state}, live)")
        for state in self._user_states():
            out.line(f"codes[{state!r}].finish(objects[base + s, {state!r}], live)")
        if sampling.having is not None:
            self._thin(sampling.having)
        out.line("c = head")
        out.line("while c >= 0:")
        with _Indented(out):
            out.line("answers[answered] = c")
            for number, each in enumerate(self._supers()):
                term = each.read(out)
                out.line(f"out{number}[answered] = {term.value}")
                out.line(f"outn{number}[answered] = {term.valid or 'True'}")
            for number, call in enumerate(sampling.selected):
                self._call(call, self._of_group, "c")
                term = self._result(call)
                out.line(f"sel{number}[answered] = {term.value}")
                out.line(f"seln{number}[answered] = {term.valid or 'True'}")
            out.line("answered += 1")
            out.line("c = following[c]")
        # Arrays that supergroups share are left as they were, once all groups have been read.
        out.line("c = head")
        out.line("while c >= 0:")
        with _Indented(out):
            out.line("alive[c] = False")
            for each in self._supers():
                each.forget(out)
            out.line("c = following[c]")

    # ------------------------------------------------------------------- conditions and calls

    def _test(self, condition: Condition, leaf: Callable[[Column], Term]) -> str:
        """Append the calls of a condition, and return the text of whether it holds."""
        group = "g" if leaf == self._of_tuple else "c"
        for call in condition.calls:
            self._call(call, leaf, group)
        return is_true(self.out.expression(condition.condition, leaf))

    def _call(self, call: StatefulCall, leaf: Callable[[Column], Term], group: str) -> None:
        """Append a stateful call, which is not made if an argument is NULL."""
        out, result = self.out, self._result(call)
        terms = [out.expression(argument, leaf) for argument in call.arguments]
        arguments = [term.value for term in terms]
        if call.function in LIBRARY:
            own = ["marks", group] if call.function in samplers.READS_GROUP else []
            state = LIBRARY[call.function].state
            text = f"{call.function}({', '.join([state, 'live', *own, *arguments])})"
        else:
            state = STATEFUL[call.function].state
            text = f"user[{call.function!r}]({', '.join([f'objects[base + s, {state!r}]', *arguments])})"
        tests = [term.valid for term in terms if term.valid is not None]
        if not tests:
            out.line(f"{result.value} = {text}")
        else:
            out.line(f"{result.valid} = {' and '.join(tests)}")
            out.line(f"{result.value} = {zero(call.type)}")
            out.line(f"if {result.valid}:")
            out.line(f"    {result.value} = {text}")

    def _result(self, call: StatefulCall) -> Term:
        name = call.name.lstrip("$")
        return Term(name, f"{name}_ok" if call.is_nullable else None)

    def _of_tuple(self, column: Column) -> Term:
        return self._leaf(column, "i", "g")

    def _of_group(self, column: Column) -> Term:
        return self._leaf(column, "first[c]", "c")

    def _leaf(self, column: Column, row: str, group: str) -> Term:
        name = column.name
        for call in self.sampling.calls():
            if call.name == name:
                return self._result(call)
        for number, each in enumerate(self.sampling.superaggregates):
            if each.name == name:
                return SuperaggregateText(number, each).read(self.out)
        for number, aggregate in enumerate(self.sampling.aggregates):
            if aggregate.name == name:
                is_null = aggregate.is_nullable
                return Term(f"a{number}[{group}]", f"b{number}[{group}]" if is_null else None)
        bare = name.lstrip("$")
        return Term(f"v_{bare}[{row}]", f"n_{bare}[{row}]" if column.is_nullable else None)


class _Indented:
    """Indents the lines of a block."""

    def __init__(self, out: KernelText) -> None:
        self._out = out

    def __enter__(self) -> None:
        self._out.depth += 1

    def __exit__(self, *_: object) -> None:
        self._out.depth -= 1


def _library_text() -> str:
    """Return the text of ``samplers.py`` without its imports of types."""
    source = inspect.getsource(samplers)
    return source.replace("from __future__ import annotations\n", "").replace(
        "from typing import Any\n", "import numpy as np\n\nAny = object\n"
    )
