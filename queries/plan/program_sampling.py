"""How the packets of a program are sampled: what each LFTA keeps, and what that makes of answers.

A packet is kept or dropped before any other work of an LFTA, by groups (a keyed hash of the values
of a few terms, which are the same for all packets of a group) or alone. LFTAs whose streams meet in
a node belong to one component and share one rate.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.errors import Position
    from gscope.queries.expressions.expressions import Expression

RATE_COLUMN = "$sample_rate"
"""The column of a stream with the rate at which the packets of each row were sampled."""


class SamplingMethod(Enum):
    """How an LFTA chooses the packets that it keeps, of those that its predicate accepts.

    NONE keeps every packet. GROUPS keeps those with H(terms) at most the threshold of the rate.
    TUPLES keeps each with the probability of the rate, whatever its contents are.
    """

    NONE = "none"
    GROUPS = "groups"
    TUPLES = "tuples"


@dataclass(frozen=True, slots=True)
class LeafSampling:
    """What an LFTA keeps of its packets.

    Attributes:
        method: how packets are chosen; not NONE, for which an LFTA has no ``LeafSampling``.
        terms: the terms to hash with GROUPS, in order: LFTA-safe expressions over packet fields of
            a type in ``HASHED_TYPES``. LFTAs on different sides of a join have corresponding terms
            in corresponding order, of equal types. () with TUPLES.
    """

    method: SamplingMethod
    terms: tuple[Expression, ...]


class Standing(Enum):
    """What a sample makes of a column.

    WHOLE: the value of the full answer. SCALED: an estimate of a count or sum, multiplied by 1/rate
    or computed linearly from such. ESTIMATED: an estimate that needs no factor, such as an average
    or a ratio.
    """

    WHOLE = "whole"
    SCALED = "scaled"
    ESTIMATED = "estimated"


@dataclass(frozen=True, slots=True)
class NodeSampling:
    """What the sample of a component makes of an HFTA node.

    Attributes:
        query: the name of the node.
        is_whole: whether its rows are rows of the full answer: a row is there, with the same
            values, or is missing.
        scaled: the aggregates of the node that it multiplies by 1/rate before HAVING and its
            output; () for a node that does not aggregate.
        columns: what each output column is, by name.
    """

    query: str
    is_whole: bool
    scaled: tuple[str, ...]
    columns: tuple[tuple[str, Standing], ...]


@dataclass(frozen=True, slots=True)
class SamplingComponent:
    """LFTAs that share one rate, and the nodes above them.

    Attributes:
        lftas: the names of the LFTAs. Each has its own method and terms (``Lfta.sampling``); one
            without keeps every packet.
        nodes: the nodes above, in the order of the program.
        min_rate: the least rate that its queries allow; 0 for any.
    """

    lftas: tuple[str, ...]
    nodes: tuple[NodeSampling, ...]
    min_rate: float = 0.0

    def node(self, query: str) -> NodeSampling:
        """Return the entry of the node ``query``."""
        return next(node for node in self.nodes if node.query == query)


@dataclass(frozen=True, slots=True)
class HintTerm:
    """A term of SAMPLE BY.

    Attributes:
        text: the term as written.
        values: for each input of the query that it can be computed from, by its number, the term
            over the columns or packet fields of that input.
        position: its place in the text.
    """

    text: str
    values: tuple[tuple[int, Expression], ...]
    position: Position


@dataclass(frozen=True, slots=True)
class SamplingHint:
    """What a query says about its sampling.

    Attributes:
        method: the method that it asks for; None to leave the choice.
        terms: the terms of SAMPLE BY, in order; () without the clause.
        min_rate: the least rate that it allows; 0 for any.
        position: the place of the hint in the text.
        source: the name of the text in messages.
        text: the whole text, for the marked line of an error.
    """

    method: SamplingMethod | None
    terms: tuple[HintTerm, ...]
    min_rate: float
    position: Position
    source: str
    text: str
