"""Expressions of conditions as Python text that numba compiles: numbers, each with its validity.

The meaning is that of ``engine/running/vectors.py``: integers wrap, NaN is greater than all
numbers, division by zero gives NULL.
"""

# ruff: noqa: ARG001 - lenient functions have the same parameters.

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from gscope.queries.expressions.expressions import Call, Column, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


class Term(NamedTuple):
    """The text of a value, and of its validity; None for a value that is never NULL."""

    value: str
    valid: str | None = None


_SAME = dict.fromkeys(("ts_to_int", "int_to_ts", "non_temporal"), "{0}")
_STRICT: Mapping[str, str] = {
    **_SAME,
    "add_int": "wrap_add({0}, {1})",
    "sub_int": "wrap_sub({0}, {1})",
    "mul_int": "wrap_mul({0}, {1})",
    "neg_int": "wrap_sub(0, {0})",
    "abs_int": "wrap_abs({0})",
    "bit_and": "({0} & {1})",
    "bit_or": "({0} | {1})",
    "bit_xor": "({0} ^ {1})",
    "bit_not": "(~{0})",
    "add_float": "({0} + {1})",
    "sub_float": "({0} - {1})",
    "mul_float": "({0} * {1})",
    "neg_float": "(-{0})",
    "abs_float": "abs({0})",
    "not": "(not {0})",
    "int_to_float": "float({0})",
    "bool_to_int": "int({0})",
    "int_to_bool": "({0} != 0)",
    "ts_add": "wrap_add({0}, {1})",
    "ts_sub": "wrap_sub({0}, {1})",
}
"""Functions whose result is NULL where an argument is, and only there."""

_DIVISIONS: Mapping[str, str] = {
    "div_float": "({0} / {1} if {1} != 0 else 0.0)",
    "idiv_int": "(quotient({0}, {1}) if {1} != 0 else 0)",
    "mod_int": "(remainder({0}, {1}) if {1} != 0 else 0)",
}
_ORDERS = {"lt": (0, 1, False), "gt": (1, 0, False), "ge": (0, 1, True), "le": (1, 0, True)}
_ZEROS = {GsqlType.BOOL: "False", GsqlType.NULL: "False", GsqlType.FLOAT: "0.0"}


@dataclass(slots=True)
class KernelText:
    """The lines of a kernel, and the names in them.

    Attributes:
        lines: the lines so far.
        depth: how deep the next line is indented.
        temporaries: the number of temporary variables so far.
        externals: calls of functions that no kernel computes, which make it run in Python.
    """

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    temporaries: int = 0
    externals: list[Call] = field(default_factory=list)

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent the lines that are appended meanwhile."""
        self.depth += 1
        yield
        self.depth -= 1

    def name(self) -> str:
        """Return a new variable."""
        self.temporaries += 1
        return f"t{self.temporaries}"

    def keep(self, term: Term) -> Term:
        """Return ``term`` in variables of its own, computed now."""
        value = self.name()
        self.line(f"{value} = {term.value}")
        if term.valid is None:
            return Term(value)
        self.line(f"{value}_ok = {term.valid}")
        return Term(value, f"{value}_ok")

    def expression(self, expression: Expression, leaf: Callable[[Column], Term]) -> Term:
        """Append the lines that compute ``expression``, and return its term."""
        if isinstance(expression, Literal):
            return literal(expression)
        if isinstance(expression, Column):
            return leaf(expression)
        assert isinstance(expression, Call)
        terms = [self.expression(argument, leaf) for argument in expression.arguments]
        return self._call(expression, terms)

    def _call(self, call: Call, terms: Sequence[Term]) -> Term:
        function = call.function
        values = [term.value for term in terms]
        valid = all_valid(terms)
        is_float = any(argument.type is GsqlType.FLOAT for argument in call.arguments)
        if function in _STRICT:
            return self.keep(Term(_STRICT[function].format(*values), valid))
        if function in _DIVISIONS:
            a, b = (self.keep(Term(value)).value for value in values)
            both = f"{b} != 0" if valid is None else f"({valid}) and {b} != 0"
            return self.keep(Term(_DIVISIONS[function].format(a, b), both))
        if function in ("eq", "ne"):
            text = _equal(values[0], values[1], is_float=is_float)
            return self.keep(Term(text if function == "eq" else f"(not {text})", valid))
        if function in _ORDERS:
            one, other, is_negated = _ORDERS[function]
            text = less(values[one], values[other], is_float=is_float)
            return self.keep(Term(f"(not {text})" if is_negated else text, valid))
        if function == "in":
            texts = [_equal(values[0], each, is_float=is_float) for each in values[1:]]
            return self.keep(Term(f"({' or '.join(texts)})", valid))
        lenient = _LENIENT.get(function)
        if lenient is not None:
            return lenient(self, call, terms)
        return self._external(call, terms)

    def _external(self, call: Call, terms: Sequence[Term]) -> Term:
        """Return a call that the catalog evaluates, in a kernel that Python runs."""
        self.externals.append(call)
        arguments = ", ".join(
            t.value if t.valid is None else f"({t.value} if {t.valid} else None)" for t in terms
        )
        result = self.name()
        self.line(f"{result}_found = external[{len(self.externals) - 1}]({arguments})")
        self.line(f"{result}_ok = {result}_found is not None")
        self.line(f"{result} = {result}_found if {result}_ok else {zero(call.type)}")
        return Term(result, f"{result}_ok")


def literal(expression: Literal) -> Term:
    """Return a constant."""
    value = expression.value
    if value is None:
        return Term(zero(expression.type), "False")
    if isinstance(value, float):
        if math.isnan(value):
            return Term("np.nan")
        if math.isinf(value):
            return Term("np.inf" if value > 0 else "(-np.inf)")
    return Term(f"({value!r})")


def zero(kind: GsqlType) -> str:
    """Return the value under a NULL of a type."""
    return _ZEROS.get(kind, "0")


def all_valid(terms: Sequence[Term]) -> str | None:
    """Return the validity of a result that is NULL where one of ``terms`` is."""
    parts = [term.valid for term in terms if term.valid is not None]
    return " and ".join(parts) if parts else None


def is_true(term: Term) -> str:
    """Return the text of whether a condition holds; NULL does not hold."""
    return term.value if term.valid is None else f"({term.valid} and {term.value})"


def less(a: str, b: str, *, is_float: bool) -> str:
    """Return the text of a < b; NaN is greater than all numbers."""
    return f"({a} < {b} or ({b} != {b} and {a} == {a}))" if is_float else f"({a} < {b})"


def add(out: KernelText, total: str, value: str, kind: GsqlType, carry: str | None = None) -> None:
    """Append the addition of ``value`` to the variable ``total`` of a type.

    ``carry`` is the variable that counts how often the sum has exceeded 64 bits; None for no count.
    """
    if kind is GsqlType.FLOAT:
        out.line(f"{total} += {value}")
        return
    after = out.name()
    out.line(f"{after} = wrap_add({total}, {value})")
    if carry is not None:
        out.line(f"{carry} += carried({total}, {value}, {after})")
    out.line(f"{total} = {after}")


def _equal(a: str, b: str, *, is_float: bool) -> str:
    return f"({a} == {b} or ({a} != {a} and {b} != {b}))" if is_float else f"({a} == {b})"


def _valid(term: Term) -> str:
    return "True" if term.valid is None else term.valid


def _and(text: KernelText, call: Call, terms: Sequence[Term]) -> Term:
    return _junction(text, terms, "and")


def _or(text: KernelText, call: Call, terms: Sequence[Term]) -> Term:
    return _junction(text, terms, "or")


def _junction(text: KernelText, terms: Sequence[Term], word: str) -> Term:
    """Return a AND b, or a OR b, in three-valued logic."""
    a, b = terms
    valid = all_valid(terms)
    if valid is None:
        return text.keep(Term(f"({a.value} {word} {b.value})"))
    deciding = [f"({_valid(t)} and {'not ' if word == 'and' else ''}{t.value})" for t in terms]
    held = text.keep(Term(f"({' or '.join(deciding)})")).value
    value = f"(not {held})" if word == "and" else held
    return text.keep(Term(value, f"({held} or ({valid}))"))


def _case(text: KernelText, call: Call, terms: Sequence[Term]) -> Term:
    result = text.name()
    pairs = list(zip(terms[:-1:2], terms[1::2], strict=True))
    for number, (condition, then) in enumerate(pairs):
        text.line(f"{'if' if number == 0 else 'elif'} {is_true(condition)}:")
        _assign(text, result, then)
    text.line("else:")
    _assign(text, result, terms[-1])
    return Term(result, f"{result}_ok")


def _assign(text: KernelText, result: str, term: Term) -> None:
    with text.indented():
        _set(text, result, term)


def _set(text: KernelText, result: str, term: Term) -> None:
    text.line(f"{result} = {term.value}")
    text.line(f"{result}_ok = {_valid(term)}")


def _coalesce(text: KernelText, call: Call, terms: Sequence[Term]) -> Term:
    result = text.name()
    _set(text, result, terms[0])
    for term in terms[1:]:
        text.line(f"if not {result}_ok:")
        _assign(text, result, term)
    return Term(result, f"{result}_ok")


def _most(text: KernelText, call: Call, terms: Sequence[Term]) -> Term:
    return _extreme(text, call, terms, 1)


def _least(text: KernelText, call: Call, terms: Sequence[Term]) -> Term:
    return _extreme(text, call, terms, -1)


def _extreme(text: KernelText, call: Call, terms: Sequence[Term], sign: int) -> Term:
    result = text.name()
    _set(text, result, terms[0])
    is_float = call.type is GsqlType.FLOAT
    for term in terms[1:]:
        pair = (result, term.value) if sign > 0 else (term.value, result)
        better = less(*pair, is_float=is_float)
        text.line(f"if {_valid(term)} and (not {result}_ok or {better}):")
        _assign(text, result, term)
    return Term(result, f"{result}_ok")


def _is_null(text: KernelText, call: Call, terms: Sequence[Term]) -> Term:
    return text.keep(Term(f"(not ({_valid(terms[0])}))"))


def _is_true(text: KernelText, call: Call, terms: Sequence[Term]) -> Term:
    return text.keep(Term(is_true(terms[0])))


_LENIENT: Mapping[str, Callable[[KernelText, Call, Sequence[Term]], Term]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": _coalesce,
    "max_of": _most,
    "min_of": _least,
    "is_null": _is_null,
    "is_true": _is_true,
}
"""Functions that treat NULL themselves."""
