"""What queries say about their sampling: SAMPLE BY, NOT SAMPLED, and two entries of DEFINE.

    DEFINE { query_name 'flows'; sampling 'groups'; min_rate 0.05; }
    SELECT tb, srcIP, destIP, count(*) FROM TCP GROUP BY time/60 as tb, srcIP, destIP
    SAMPLE BY srcIP

What that means for packets is in ``hints.py``, which only query sets with hints or samples load.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.gsql import nodes
from gscope.queries.plan.program_sampling import HintTerm, SamplingHint, SamplingMethod
from gscope.queries.shares import parse_share

if TYPE_CHECKING:
    from collections.abc import Sequence

_METHODS = {method.value: method for method in SamplingMethod}
_METHOD = "sampling"
_MIN_RATE = "min_rate"


def sampling_hint(
    query: nodes.Query, body: nodes.Body, terms: Sequence[HintTerm], file: nodes.File
) -> SamplingHint | None:
    """Return what a query says about its sampling; None if it says nothing.

    Args:
        query: the query with its DEFINE.
        body: its SELECT, or that of a subquery.
        terms: the terms of SAMPLE BY.
        file: the text that holds it.

    Raises:
        GsqlError: an entry of DEFINE has an invalid value, or contradicts the SELECT.
    """
    method: SamplingMethod | None = None
    min_rate = 0.0
    position = body.position
    for entry in query.define:
        if entry.name.lower() == _METHOD:
            method, position = _method(entry), entry.position
        elif entry.name.lower() == _MIN_RATE:
            min_rate = _rate(entry)
    says_not = isinstance(body, nodes.Select | nodes.MergeQuery) and body.is_not_sampled
    if terms:
        if method not in (None, SamplingMethod.GROUPS):
            message = f"SAMPLE BY samples groups, but DEFINE says sampling {method.value!r}"
            remedy = "leave one of them out, or write sampling 'groups';"
            raise ResolveError(message, position=terms[0].position, remedy=remedy)
        method, position = SamplingMethod.GROUPS, terms[0].position
    if says_not:
        if method not in (None, SamplingMethod.NONE):
            message = f"NOT SAMPLED contradicts sampling {method.value!r} in DEFINE"
            raise ResolveError(message, position=position, remedy="leave one of them out")
        method = SamplingMethod.NONE
    if method is None and not min_rate:
        return None
    return SamplingHint(method, tuple(terms), min_rate, position, file.source, file.text)


def _method(entry: nodes.DefineEntry) -> SamplingMethod:
    value = str(entry.value.value).lower()
    if value not in _METHODS:
        message = f"invalid sampling: expected none, groups or tuples, got {entry.value.value!r}"
        raise ResolveError(message, position=entry.position, remedy="write sampling 'groups';")
    return _METHODS[value]


def _rate(entry: nodes.DefineEntry) -> float:
    value = entry.value.value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
        return float(value)
    if isinstance(value, str):
        with suppress(ValueError):
            return parse_share(value)
    message = (
        "invalid min_rate: expected above 0 and at most 1, such as 0.1, '10%' or '1/10', got "
        f"{value!r}"
    )
    raise ResolveError(message, position=entry.position, remedy="write min_rate '5%';")
