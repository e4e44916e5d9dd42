"""What the hints of queries mean for the samples that the results above them share.

A hint holds for every result that reads the query. One that would break a query is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import GsqlError, UnsupportedError
from gscope.queries.analysis.lineage.compatible import ALL
from gscope.queries.analysis.lineage.forest import tree_of_one
from gscope.queries.analysis.lineage.terms import is_usable, term_of
from gscope.queries.analysis.lineage.traces import Traces
from gscope.queries.analysis.sampling.choose import Wishes, choose
from gscope.queries.analysis.sampling.rules import MERGE
from gscope.queries.plan.program_sampling import HintTerm, SamplingHint, SamplingMethod
from gscope.queries.plan.show_expressions import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.errors import Position
    from gscope.queries.analysis.lineage.compatible import CompatibleSets
    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.lineage.terms import Term, Terms
    from gscope.queries.analysis.sampling.choose import Choice
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import Node


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
