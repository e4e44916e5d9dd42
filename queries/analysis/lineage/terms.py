"""Terms to sample by: functions of packet fields, and the sets of them.

Tuples of several streams that meet in a join are sampled by *corresponding* terms. So a term has an
expression over each stream (``Values``); where tuples of several streams contribute to one row of
an answer, the expressions have one value. For ``S.srcIP = A.destIP`` it is

    {S: srcIP, A: destIP}

A term is the cut of its bases, one for each stream (``Term``). A set of terms stands for all
functions of them; the meet of two sets is the set of what is a function of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from gscope.queries.analysis.lineage.cuts import (
    WHOLE,
    AddressMask,
    Cut,
    Mask,
    Quotient,
    Whole,
    is_function_of,
    mask,
    meet,
    quotient,
    remainder,
)
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.ordering.temporal import ordering_of
from gscope.queries.expressions.expressions import Call, Expression, Literal, PacketField, walk
from gscope.queries.expressions.types import HASHED_TYPES, GsqlType
from gscope.queries.plan.split.border import is_low_key
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Values: TypeAlias = Mapping[str, Expression]
"""An expression over the packet fields of each stream, by the name of the stream."""

_INJECTIVE = frozenset(
    {"add_int", "sub_int", "bit_xor", "bit_not", "neg_int", "bool_to_int", "non_temporal"}
)
"""Functions of one value, beside constants, that distinguish all values, also where they wrap."""

_COMMUTATIVE = frozenset({"add_int", "sub_int", "bit_xor", "bit_and", "mul_int"})
"""Functions whose constant may come first: a difference distinguishes values either way."""


@dataclass(frozen=True, slots=True)
class Term:
    """A function of packet fields to sample by.

    Attributes:
        bases: for each stream, by name in order, an expression over its packet fields.
        cut: the function of the value of the base.
    """

    bases: tuple[tuple[str, Expression], ...]
    cut: Cut

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it is over."""
        return tuple(stream for stream, _ in self.bases)

    def over(self, stream: str) -> Expression:
        """Return the expression to hash of the packets of ``stream``."""
        return self.cut.applied(dict(self.bases)[stream])

    def of(self, streams: Iterable[str]) -> Term:
        """Return the term over some of its streams."""
        wanted = set(streams)
        return term_of({s: self.cut.applied(base) for s, base in self.bases if s in wanted})


Terms: TypeAlias = tuple[Term, ...]
"""A set of terms over the same streams, in order, none of which is a function of the others."""


def term_of(values: Values) -> Term:
    """Return the term of a value: as much of its expressions as is a cut, over the rest."""
    cut: Cut = WHOLE
    while True:
        step = _outer(values)
        if step is None:
            break
        function, constants, inner = step
        if cut == WHOLE and (function in _INJECTIVE or _is_odd_factor(function, constants)):
            values = inner
            continue
        made = _composed(cut, function, constants, are_natural=all(map(is_natural, inner.values())))
        if made is None:
            break
        cut, values = made, inner
    return Term(tuple(sorted(values.items())), cut)


def is_usable(values: Values) -> bool:
    """Return whether an LFTA can hash the value, and sampling by it chooses groups that last.

    A time would choose other groups in each epoch.
    """
    return all(
        expression.type in HASHED_TYPES
        and is_low_key(expression)
        and any(isinstance(part, PacketField) for part in walk(expression))
        and not any(
            isinstance(part, PacketField) and ordering_of(part).is_temporal
            for part in walk(expression)
        )
        and all(FUNCTIONS[p.function].is_pure for p in walk(expression) if isinstance(p, Call))
        for expression in values.values()
    )


def are_functions_of(terms: Iterable[Term], given: Sequence[Term]) -> bool:
    """Return whether every one of ``terms`` is a function of ``given``."""
    return all(is_determined(term, given) for term in terms)


def is_determined(term: Term, given: Sequence[Term]) -> bool:
    """Return whether ``term`` is a function of ``given``.

    It is if one of them is as fine a cut of the same bases, or if the bases themselves are
    functions of ``given``: as cuts, or as calls of one function whose arguments are.
    """
    if any(t.bases == term.bases and is_function_of(term.cut, t.cut) for t in given):
        return True
    inner = term_of(dict(term.bases))
    if inner.bases != term.bases:
        # Whatever determines the arguments of a cut determines the cut.
        return is_determined(inner, given)
    arguments = _arguments(dict(term.bases))
    return arguments is not None and all(is_determined(term_of(a), given) for a in arguments)


def common(one: Sequence[Term], other: Sequence[Term]) -> Terms:
    """Return the meet of two sets: the finest terms that are functions of both."""
    found: list[Term] = []
    for term in one:
        if is_determined(term, other):
            found.append(term)
        for third in other:
            cut = meet(term.cut, third.cut) if term.bases == third.bases else None
            if cut is not None:
                found.append(Term(term.bases, cut))
    found += [term for term in other if is_determined(term, one)]
    return reduced(found)


def reduced(terms: Iterable[Term]) -> Terms:
    """Return ``terms`` without those that are functions of the others; of equal ones the first."""
    kept = list(dict.fromkeys(terms))
    for term in reversed(tuple(kept)):
        rest = [each for each in kept if each != term]
        if is_determined(term, rest):
            kept = rest
    return tuple(kept)


def joined(one: Sequence[Term], other: Sequence[Term]) -> Terms:
    """Return the finest terms over the streams of both sets that are functions of each on its own.

    A term of one set goes with a term of the other that hashes the same on the streams they share.
    """
    shared = {s for t in one for s in t.streams} & {s for t in other for s in t.streams}
    found: list[Term] = []
    for first in one:
        for second in other:
            cut = meet(first.cut, second.cut)
            bases = {**dict(first.bases), **dict(second.bases)}
            agree = all(dict(first.bases)[s] == dict(second.bases)[s] for s in shared)
            if cut is not None and agree:
                found.append(Term(tuple(sorted(bases.items())), cut))
    # Where one set has no streams of its own, each of its values need not be hashed as it is.
    for wide, narrow in ((one, other), (other, one)):
        if narrow and set(narrow[0].streams) == shared:
            found += [t for t in wide if is_determined(t.of(shared), narrow)]
    return reduced(found)


def _outer(values: Values) -> tuple[str, tuple[int, ...], dict[str, Expression]] | None:
    """Return the function that all expressions are of one inner value, with its constants.

    None unless all are calls of one function with the same constants at the same places.
    """
    found: set[tuple[str, tuple[Literal | None, ...]]] = set()
    inner: dict[str, Expression] = {}
    for stream, expression in values.items():
        if not isinstance(expression, Call):
            return None
        places = tuple(a if isinstance(a, Literal) else None for a in expression.arguments)
        if places.count(None) != 1:
            return None
        found.add((expression.function, places))
        inner[stream] = expression.arguments[places.index(None)]
    if len(found) != 1:
        return None
    function, constants = found.pop()
    if constants[0] is not None and function not in _COMMUTATIVE:
        return None
    numbers = [a.value for a in constants if a is not None]
    if not all(isinstance(number, int) for number in numbers):
        return None
    return function, tuple(int(number) for number in numbers if number is not None), inner


def _composed(
    cut: Cut, function: str, constants: tuple[int, ...], *, are_natural: bool
) -> Cut | None:
    """Return ``cut`` of a call of ``function`` as a cut of its argument; None if it is not one."""
    match function, constants:
        case "bit_and", (bits,):
            masked = mask(bits)
            return meet(cut, masked) if masked and isinstance(cut, Mask | Whole) else None
        case "ip_mask", (bits,):
            masked = AddressMask.masked(bits)
            if masked is None:
                return None
            address = masked
        case "prefix", (bits4, bits6):
            address = AddressMask.prefix(bits4, bits6)
        case "shr", (count,) if 0 <= count < 63:
            return _shifted(cut, count)
        case (("idiv_int" | "floor_div"), (divisor,)) if are_natural and divisor > 0:
            if divisor & (divisor - 1) == 0:
                return _shifted(cut, divisor.bit_length() - 1)
            if cut == WHOLE:
                return quotient(divisor)
            of_quotient = _divisor(cut)
            return None if of_quotient is None else quotient(divisor * of_quotient)
        case "mod_int", (divisor,) if are_natural and divisor > 0:
            return remainder(divisor) if cut == WHOLE else None
        case _:
            return None
    return address if cut == WHOLE else meet(cut, address)


def _shifted(cut: Cut, count: int) -> Cut | None:
    """Return ``cut`` of ``x >> count`` as a cut of x."""
    if cut == WHOLE:
        return mask(-1 << count)
    if isinstance(cut, Mask):
        # The first bits of the shifted value are copies of the sign.
        sign = (1 << 63) if cut.bits >> (63 - count) else 0
        return mask((cut.bits << count) & ((1 << 64) - 1) | sign)
    if isinstance(cut, Quotient):
        return quotient(cut.divisor << count)
    return None


def _divisor(cut: Cut) -> int | None:
    """Return the divisor whose quotient ``cut`` is, None if it is not a quotient."""
    if isinstance(cut, Quotient):
        return cut.divisor
    if isinstance(cut, Mask):
        divisor = cut.bits & -cut.bits
        is_quotient = cut.bits == (1 << 64) - divisor and divisor < 1 << 63
        return divisor if is_quotient else None
    return None


def _is_odd_factor(function: str, constants: tuple[int, ...]) -> bool:
    return function == "mul_int" and bool(constants[0] % 2)


def is_natural(expression: Expression) -> bool:
    """Return whether every value is 0 or more: fields of headers are unsigned."""
    match expression:
        case PacketField(type=GsqlType.INT):
            return True
        case Call("bit_and", arguments):
            return any(map(_is_natural_literal, arguments)) or all(map(is_natural, arguments))
        case Call(("idiv_int" | "floor_div" | "shr" | "mod_int"), (value, Literal() as by)):
            return is_natural(value) and _is_natural_literal(by)
        case Call("ip_to_int" | "bool_to_int" | "length"):
            return True
    return False


def _is_natural_literal(expression: Expression) -> bool:
    return (
        isinstance(expression, Literal)
        and isinstance(expression.value, int)
        and expression.value >= 0
    )


def _arguments(values: Values) -> list[Values] | None:
    """Return the arguments, beside constants, of calls of one function; None if they are not."""
    calls = list(values.items())
    first = calls[0][1]
    if not isinstance(first, Call):
        return None
    found: list[Values] = []
    for number, argument in enumerate(first.arguments):
        each: dict[str, Expression] = {}
        for stream, call in calls:
            if (
                not isinstance(call, Call)
                or call.function != first.function
                or len(call.arguments) != len(first.arguments)
            ):
                return None
            each[stream] = call.arguments[number]
        if isinstance(argument, Literal):
            if any(other != argument for other in each.values()):
                return None
        else:
            found.append(each)
    return found
