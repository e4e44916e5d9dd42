"""What queries say about their sampling: SAMPLE BY, NOT SAMPLED, and two entries of DEFINE.

    DEFINE { query_name 'flows'; sampling 'groups'; min_rate 0.05; }
    SELECT tb, srcIP, destIP, count(*) FROM TCP GROUP BY time/60 as tb, srcIP, destIP
    SAMPLE BY srcIP

A hint holds for every result that reads the query. One that would break a query is an error.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.errors import GsqlError, ResolveError, UnsupportedError
from gscope.queries.analysis.lineage.compatible import ALL
from gscope.queries.analysis.lineage.forest import tree_of_one
from gscope.queries.analysis.lineage.terms import is_usable, term_of
from gscope.queries.analysis.lineage.traces import Traces
from gscope.queries.analysis.sampling.choose import Wishes, choose
from gscope.queries.analysis.sampling.rules import MERGE
from gscope.queries.gsql import nodes
from gscope.queries.plan.program_sampling import HintTerm, SamplingHint, SamplingMethod
from gscope.queries.plan.show_expressions import show
from gscope.queries.shares import parse_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.errors import Position
    from gscope.queries.analysis.lineage.compatible import CompatibleSets
    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.lineage.terms import Term, Terms
    from gscope.queries.analysis.sampling.choose import Choice
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import Node

_METHODS = {method.value: method for method in SamplingMethod}
_METHOD = "sampling"
_MIN_RATE = "min_rate"


def hint_term(text: str, expression: Expression, position: Position, node: Node) -> HintTerm:
    """Return a term of SAMPLE BY over the columns of ``node``, as far as its inputs have it.

    Args:
        text: the term as written.
        expression: the term over the columns of ``node``.
        position: its place.
        node: the node of the query whose columns SAMPLE BY reads.
    """
    tree = tree_of_one(node)
    values = Traces().values(expression, (tree,))
    return HintTerm(text, tuple((int(number), e) for number, e in values.items()), position)


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
    message = f"invalid min_rate: expected above 0 and at most 1, such as 0.1, '10%' or '1/10', got {value!r}"
    raise ResolveError(message, position=entry.position, remedy="write min_rate '5%';")


def hinted(tree: TreeNode) -> list[tuple[TreeNode, SamplingHint]]:
    """Return the hints of the queries of a tree, lower ones first."""
    return [
        (each, each.query.sampling)
        for each in tree.walk()
        if each.is_root and each.query.sampling is not None
    ]


def wishes_of(tree: TreeNode, sets: CompatibleSets) -> Wishes:
    """Return what the queries of a tree ask for.

    Raises:
        GsqlError: a term of SAMPLE BY cannot be hashed, or two queries ask for different methods.
    """
    found = hinted(tree)
    methods = {hint.method for _, hint in found}
    min_rate = max((hint.min_rate for _, hint in found), default=0.0)
    if SamplingMethod.NONE in methods:
        return Wishes(SamplingMethod.NONE, (), min_rate)
    if {SamplingMethod.TUPLES, SamplingMethod.GROUPS} <= methods:
        one = next(h for _, h in found if h.method is SamplingMethod.TUPLES)
        message = "one query is sampled by tuples, but another that is read with it by groups"
        remedy = f"let all queries below {tree.query.name} ask for one method"
        raise _located(UnsupportedError(message, position=one.position, remedy=remedy), one)
    if SamplingMethod.TUPLES in methods:
        return Wishes(SamplingMethod.TUPLES, (), min_rate)
    terms = tuple((node, _terms(node, hint, sets)) for node, hint in found if hint.terms)
    return Wishes(None, terms, min_rate)


def check_hints(choice: Choice, sets: CompatibleSets) -> None:
    """Refuse hints that a result cannot follow.

    Args:
        choice: the scheme of the result on its own.
        sets: the compatible sets of its tree.

    Raises:
        UnsupportedError: a hint would break a query, or contradicts another.
    """
    found = hinted(choice.tree)
    if any(hint.method is SamplingMethod.NONE for _, hint in found):
        return
    if choice.is_sound:
        _check_agreement(choice, found, sets)
    for node, hint in found:
        if hint.method is SamplingMethod.GROUPS and not choice.is_sound:
            for written, term in zip(hint.terms, _terms(node, hint, sets), strict=True):
                if not sets.admits(node, (term,)):
                    raise _located(_not_of_rows(node, written.text, written.position, sets), hint)
        if hint.method is not None and not choice.is_sound:
            raise _located(_broken(choice, node, hint, sets), hint)
        if hint.method is SamplingMethod.GROUPS and not hint.terms:
            methods = choice.assignment.methods
            if any(methods[stream] is not SamplingMethod.GROUPS for stream in node.streams):
                message = f"no term is the same in all packets of a row of {node.query.name}"
                remedy = "write sampling 'tuples'; or group by a field that an LFTA can compute"
                if sets.of(node) is ALL:
                    message = f"{node.query.name} has no groups to keep"
                    remedy = "name terms: SAMPLE BY srcIP; or write sampling 'tuples';"
                error = UnsupportedError(message, position=hint.position, remedy=remedy)
                raise _located(error, hint)


def _check_agreement(
    choice: Choice, found: Sequence[tuple[TreeNode, SamplingHint]], sets: CompatibleSets
) -> None:
    """Refuse terms of a query other than those of a query that reads it."""
    for node, hint in found:
        terms = choice.assignment.scheme.terms(node.streams)
        if hint.terms and set(_terms(node, hint, sets)) != set(terms):
            others = (each for each, h in found if h.terms and each is not node)
            reader = next((each for each in others if each.is_above(node)), choice.tree)
            message = (
                f"SAMPLE BY of {node.query.name} names other terms than {reader.query.name}, "
                f"which reads it and is sampled by {_shown(terms)}"
            )
            remedy = "name the same terms in both, or leave one of them out"
            raise _located(UnsupportedError(message, position=hint.position, remedy=remedy), hint)


def _terms(node: TreeNode, hint: SamplingHint, sets: CompatibleSets) -> Terms:
    """Return the terms of SAMPLE BY over the streams of the query's node."""
    return tuple(_term(node, written, hint, sets) for written in hint.terms)


def _term(node: TreeNode, written: HintTerm, hint: SamplingHint, sets: CompatibleSets) -> Term:
    inputs = node.own_inputs()
    values: dict[str, Expression] = {}
    is_one = True
    for number, expression in written.values:
        for stream, value in sets.traces.values(expression, (inputs[number],)).items():
            is_one = is_one and values.setdefault(stream, value) == value
    missing = [stream for stream in node.streams if stream not in values]
    if missing or not is_one:
        message = f"{written.text} is not known for all packets of a row of {node.query.name}"
        remedy = f"sample by {_offer(node, sets)}"
    elif not is_usable(values):
        message = f"packets cannot be sampled by {written.text}"
        remedy = (
            "a term reads fields of packets that an LFTA can compute, and no time: it would choose "
            "other groups in each epoch"
        )
    else:
        return term_of(values)
    raise _located(UnsupportedError(message, position=written.position, remedy=remedy), hint)


def _not_of_rows(
    node: TreeNode, text: str, position: Position, sets: CompatibleSets
) -> UnsupportedError:
    message = f"packets of one row of {node.query.name} can differ in {text}"
    return UnsupportedError(message, position=position, remedy=f"sample by {_offer(node, sets)}")


def _broken(
    choice: Choice, node: TreeNode, hint: SamplingHint, sets: CompatibleSets
) -> UnsupportedError:
    reason = choice.judge.breaches[0].text if choice.judge.breaches else "its streams conflict"
    what = ", ".join(term.text for term in hint.terms) or "tuples"
    if hint.method is SamplingMethod.GROUPS and not hint.terms:
        what = "groups"
    message = f"sampling by {what} breaks {reason}"
    without = choose(choice.tree, sets, Wishes())
    terms = without.assignment.scheme.terms(node.streams)
    if choice.judge.breaches and choice.judge.breaches[0].rule == MERGE:
        remedy = "write SAMPLE BY behind the union, with the names of its columns"
    elif not without.is_sound:
        remedy = "leave the hint out: no sample of packets leaves the answer sound"
    elif terms:
        remedy = f"sample by functions of {_shown(terms)}"
    elif hint.method is SamplingMethod.TUPLES:
        remedy = "leave the hint out: groups are then kept where rows need them whole"
    else:
        remedy = "write sampling 'tuples';"
    return UnsupportedError(message, position=hint.position, remedy=remedy)


def _offer(node: TreeNode, sets: CompatibleSets) -> str:
    """Return the terms by which a query can be sampled, for a remedy."""
    terms = sets.of(node)
    if terms is ALL:
        return "fields of packets"
    if not terms:
        return "tuples: DEFINE { sampling 'tuples'; }"
    return f"functions of {_shown(terms)}"


def _shown(terms: Terms) -> str:
    return ", ".join(show(term.over(term.streams[0])) for term in terms)


def _located(error: GsqlError, hint: SamplingHint) -> GsqlError:
    return error.located(hint.text, hint.source)
