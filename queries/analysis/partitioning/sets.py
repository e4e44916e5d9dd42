"""Partitioning sets: functions of packet fields that divide packets among hosts, and their meet.

All packets are divided by one set, whichever protocol or interface they are of. A *plain* member is
a cut of one expression over packet fields, as in sampling. A *symmetric* one is a function of two
expressions that does not depend on their order, such as ``{srcIP, destIP}``: it sends both
directions of a conversation to one host, so a join with crossed keys (``S.srcIP = A.destIP and
S.destIP = A.srcIP``) finds its pairs there. Symmetric members go beyond the publication.

Source: Johnson, Muthukrishnan, Shkapenyuk, Spatscheck, "Query-aware partitioning for monitoring
massive network data streams" (SIGMOD 2008), §3: any nonempty subset of a compatible set is
compatible, and so are functions of its members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.analysis.lineage.cuts import WHOLE, Cut, is_function_of, meet
from gscope.queries.analysis.lineage.terms import Term, Terms, common, is_determined, reduced
from gscope.queries.catalog.protocols import PROTOCOLS
from gscope.queries.expressions.expressions import PacketField, walk
from gscope.queries.plan.show_expressions import show
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.queries.expressions.expressions import Expression

_FIELDS = {field.name: number for number, field in enumerate(PROTOCOLS["TCP"].fields)}

_PACKETS = ""
"""The one stream of plain members: that of all packets."""


def plain(base: Expression, cut: Cut) -> Term:
    """Return the plain member that is the cut of an expression."""
    return Term(((_PACKETS, base),), cut)


@dataclass(frozen=True, slots=True)
class Symmetric:
    """The same cut of two expressions, in any order.

    Attributes:
        bases: the expressions, in the order of their texts.
        cut: the function of the value of each.
    """

    bases: tuple[Expression, Expression]
    cut: Cut

    @classmethod
    def of(cls, one: Expression, other: Expression, cut: Cut) -> Symmetric:
        """Return the member of two expressions, whichever comes first."""
        first, second = sorted((one, other), key=lambda base: _place(plain(base, WHOLE)))
        return cls((first, second), cut)

    @property
    def parts(self) -> tuple[Term, Term]:
        """Its two cuts as plain members."""
        one, other = self.bases
        return plain(one, self.cut), plain(other, self.cut)


@dataclass(frozen=True, slots=True)
class PartitionSet:
    """A set of functions of packet fields, none of which is a function of the others.

    Attributes:
        plain: cuts of one expression.
        symmetric: cuts of two expressions in any order.
    """

    plain: Terms = ()
    symmetric: tuple[Symmetric, ...] = ()

    @classmethod
    def of(cls, terms: Iterable[Term], pairs: Iterable[Symmetric] = ()) -> PartitionSet:
        """Return the set of some members, in the order of the fields that they read."""
        kept = reduced(sorted(terms, key=_place))
        found = list(dict.fromkeys(pairs))
        for pair in tuple(found):
            rest = [each for each in found if each != pair]
            if _follows(pair, kept, rest):
                found = rest
        return cls(kept, tuple(sorted(found, key=_place)))

    def __bool__(self) -> bool:
        return bool(self.plain or self.symmetric)

    def texts(self) -> tuple[str, ...]:
        """Return its members as GSQL; a symmetric one in braces."""
        return (*map(_text, self.plain), *map(_text, self.symmetric))

    def __str__(self) -> str:
        return f"({', '.join(self.texts())})"

    def meet(self, other: PartitionSet) -> PartitionSet:
        """Return the finest set that is a function of both."""
        pairs = [
            Symmetric(one.bases, cut)
            for one in self.symmetric
            for second in other.symmetric
            if one.bases == second.bases and (cut := meet(one.cut, second.cut)) is not None
        ]
        for given, terms in ((self, other.plain), (other, self.plain)):
            pairs += [shared for pair in given.symmetric for shared in _shared(pair, terms)]
        return PartitionSet.of(common(self.plain, other.plain), pairs)

    def determines(self, other: PartitionSet) -> bool:
        """Return whether every member of ``other`` is a function of this set."""
        return all(is_determined(term, self.plain) for term in other.plain) and all(
            _follows(pair, self.plain, self.symmetric) for pair in other.symmetric
        )


def _follows(pair: Symmetric, terms: Terms, pairs: Iterable[Symmetric]) -> bool:
    """Return whether a symmetric member is a function of others."""
    if any(pair.bases == each.bases and is_function_of(pair.cut, each.cut) for each in pairs):
        return True
    return all(is_determined(part, terms) for part in pair.parts)


def _shared(pair: Symmetric, terms: Terms) -> list[Symmetric]:
    """Return the symmetric members that are functions of ``pair`` and of plain members."""
    cuts = [pair.cut]
    for part in pair.parts:
        own: list[Cut] = [WHOLE] if is_determined(part, terms) else []
        own += [term.cut for term in terms if term.bases == part.bases]
        cuts = [cut for one in cuts for other in own if (cut := meet(one, other)) is not None]
    return [Symmetric(pair.bases, cut) for cut in cuts]


def _place(member: Term | Symmetric) -> tuple[int, str]:
    """Return where a member stands among others.

    The order is by the first of its fields in TCP, then by text.
    """
    base = member.bases[0][1] if isinstance(member, Term) else member.bases[0]
    fields = (
        _FIELDS.get(part.name, len(_FIELDS)) for part in walk(base) if isinstance(part, PacketField)
    )
    return min(fields, default=len(_FIELDS)), _text(member)


def _text(member: Term | Symmetric) -> str:
    if isinstance(member, Term):
        return show(member.over(_PACKETS))
    one, other = (show(part.over(_PACKETS)) for part in member.parts)
    return f"{{{one}, {other}}}"
