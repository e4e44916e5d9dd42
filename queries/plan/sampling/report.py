"""What the analysis of sampling found, for explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program_sampling import SamplingMethod, Standing


@dataclass(frozen=True, slots=True)
class LeafReport:
    """What an LFTA keeps, and why.

    Attributes:
        lfta: the name of the LFTA.
        method: its method.
        terms: the terms that it hashes.
        reason: the query and the rule that decided it.
    """

    lfta: str
    method: SamplingMethod
    terms: tuple[Expression, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class QueryReport:
    """What sampling makes of a query.

    Attributes:
        query: its name.
        is_whole: whether its rows are rows of the full answer.
        reason: the node and the rule that decided it.
        compatible: the terms of its compatible set, as text; () if it has none.
        columns: what each column is, by name.
        of_sample: what each of its columns that describe estimates is computed from, by name.
    """

    query: str
    is_whole: bool
    reason: str
    compatible: tuple[str, ...]
    columns: tuple[tuple[str, Standing], ...]
    of_sample: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ComponentReport:
    """LFTAs that share a rate, and the queries that read them.

    Attributes:
        leaves: the LFTAs.
        queries: the queries, lower ones first.
        min_rate: the least rate that they allow; 0 for any.
    """

    leaves: tuple[LeafReport, ...]
    queries: tuple[QueryReport, ...]
    min_rate: float


@dataclass(frozen=True, slots=True)
class UnsampledReport:
    """A result whose packets are all kept.

    Attributes:
        result: the name of the result.
        lftas: its LFTAs.
        reasons: the queries that sampling would break, each with the rule; the hint that forbids
            it.
    """

    result: str
    lftas: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SamplingReport:
    """The components of a query set, and the results that are not sampled."""

    components: tuple[ComponentReport, ...]
    unsampled: tuple[UnsampledReport, ...]
