"""The kernel of a sampling operator as Python text: a function that folds tuple after tuple.

The same text is compiled by numba and, for few tuples and for functions of users, run by Python.
Groups are numbers, so that the kernel needs no hash table: the caller has numbered the keys of all
tuples. The live groups of a supergroup are a list in the order in which they were inserted.
"""

from __future__ import annotations

import inspect
from dataclasses import field
from typing import TYPE_CHECKING

from gscope.engine.sampling import kernel_functions, samplers
from gscope.engine.sampling.aggregate_text import aggregate_texts
from gscope.engine.sampling.expression_text import (
    KernelText,
    Term,
    is_true,
    zero,
)
from gscope.engine.sampling.superaggregate_text import SuperaggregateText, superaggregate_texts
from gscope.queries.catalog.sampling.stateful import LIBRARY, STATEFUL
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.expressions.expressions import Call, Column
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
    "wrapped",
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
        for aggregate in aggregate_texts(self.sampling):
            self.parameters += aggregate.arrays()
        for each in self._supers():
            self.parameters += each.arrays()
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
            library_text() + "\n\n" + text,
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
        return superaggregate_texts(self.sampling)

    # ------------------------------------------------------------------------------ the body

    def _body(self) -> None:
        out = self.out
        out.line("answered = 0")
        out.line("lived = 0")
        out.line("for s in range(len(before)):")
        with out.indented():
            self._begin_supergroup()
            out.line("for i in range(starts[s] + skip[s], starts[s + 1]):")
            with out.indented():
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
        with out.indented():
            # Behind the first row, which is there in any case, are those of the live groups.
            out.line("for i in range(starts[s] + 1, starts[s] + skip[s]):")
            with out.indented():
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
        with out.indented():
            for each in self._supers():
                each.keep(out)
            out.line("c = head")
            out.line("while c >= 0:")
            with out.indented():
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
        with out.indented():
            out.line("if live >= max_groups:")
            out.line("    left_out[0] += 1")
            out.line("    continue")
            self._insert()
        for each in self._supers():
            each.add_tuple(out)
        for call in sampling.updates:
            self._call(call, self._of_tuple, "g")
        for aggregate in aggregate_texts(sampling):
            aggregate.add_tuple(out, self._of_tuple)
        if sampling.cleaning_when is not None:
            assert sampling.cleaning_by is not None
            out.line(f"if {self._test(sampling.cleaning_when, self._of_tuple)}:")
            with out.indented():
                self._thin(sampling.cleaning_by)

    def _insert(self) -> None:
        out = self.out
        self._link()
        out.line("marks[g] = 0.0")
        for aggregate in aggregate_texts(self.sampling):
            aggregate.insert(out)
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

    def _thin(self, condition: Condition) -> None:
        """Append a pass over the live groups that removes those for which ``condition`` fails."""
        out = self.out
        out.line("before_pass = live")
        out.line("c = head")
        out.line("while c >= 0:")
        with out.indented():
            out.line("after = following[c]")
            out.line(f"if not {self._test(condition, self._of_group)}:")
            with out.indented():
                self._remove()
            out.line("c = after")
        if sums := [each for each in self._supers() if each.is_float_sum]:
            out.line("if live < before_pass:")
            with out.indented():
                for each in sums:
                    each.settle(out)

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
        for aggregate in aggregate_texts(self.sampling):
            aggregate.count_wrapped(out)
        for each in self._supers():
            each.remove(out)

    def _end_supergroup(self) -> None:
        out, sampling = self.out, self.sampling
        for state in self.states:
            out.line(f"final_{state}({state}, live)")
        for state in self._user_states():
            out.line(f"codes[{state!r}].finish(objects[base + s, {state!r}], live)")
        for superaggregate in self._supers():
            superaggregate.count_wrapped(out)
        if sampling.having is not None:
            self._thin(sampling.having)
        out.line("c = head")
        out.line("while c >= 0:")
        with out.indented():
            out.line("answers[answered] = c")
            for aggregate in aggregate_texts(sampling):
                aggregate.count_wrapped(out)
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
        with out.indented():
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
            text = (
                f"user[{call.function!r}]"
                f"({', '.join([f'objects[base + s, {state!r}]', *arguments])})"
            )
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
        for each in self._supers():
            if each.meant.name == name:
                return each.read(self.out)
        for aggregate in aggregate_texts(self.sampling):
            if aggregate.meant.name == name:
                return aggregate.value(group)
        bare = name.lstrip("$")
        return Term(f"v_{bare}[{row}]", f"n_{bare}[{row}]" if column.is_nullable else None)


def library_text() -> str:
    """Return the text of the functions that kernels call, without imports of types."""
    source = inspect.getsource(kernel_functions) + inspect.getsource(samplers)
    for line in (
        "from __future__ import annotations",
        "from typing import Any",
        "import numpy as np",
    ):
        source = source.replace(f"{line}\n", "")
    return f"import numpy as np\n\nAny = object\n{source}"
