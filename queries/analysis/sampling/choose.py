"""The scheme of one tree: which packets each leaf keeps.

From the top down, the first node with a compatible set is made whole: its packets are sampled by
all of its set, so that what it computes, and all below it, is exact. Leaves above which there is
none are sampled by tuples. If that breaks a node, the tree is not sampled.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.queries.analysis.lineage.compatible import ALL
from gscope.queries.analysis.lineage.cuts import WHOLE, meet
from gscope.queries.analysis.lineage.terms import Term, joined
from gscope.queries.analysis.sampling.standings import Judge, Scheme
from gscope.queries.plan.logical import Merge
from gscope.queries.plan.program_sampling import SamplingMethod
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.queries.analysis.lineage.compatible import CompatibleSets
    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.lineage.terms import Terms


@dataclass(slots=True)
class Assignment:
    """The methods and sets of streams, while trees are added.

    Attributes:
        methods: the method of each stream.
        sets: sets of corresponding terms over disjoint sets of streams.
    """

    methods: dict[str, SamplingMethod] = field(default_factory=dict)
    sets: list[Terms] = field(default_factory=list)

    def copy(self) -> Assignment:
        """Return the same assignment, to be changed on its own."""
        return Assignment(dict(self.methods), list(self.sets))

    @property
    def scheme(self) -> Scheme:
        """The assignment as it is now."""
        return Scheme(dict(self.methods), tuple(self.sets))

    def keep_all(self, stream: str) -> bool:
        """Sample no packets of ``stream``; return False if others sample them."""
        return self.methods.setdefault(stream, SamplingMethod.NONE) is SamplingMethod.NONE

    def by_tuples(self, stream: str, *, always: bool = False) -> bool:
        """Sample ``stream`` by tuples, or as others do; return False if that is impossible.

        Args:
            stream: the stream.
            always: whether groups will not do.
        """
        method = self.methods.setdefault(stream, SamplingMethod.TUPLES)
        return method is SamplingMethod.TUPLES or (method is SamplingMethod.GROUPS and not always)

    def by_groups(self, terms: Terms) -> bool:
        """Sample the streams of ``terms`` by as much of them as suits the sets that share a stream.

        Returns:
            False if nothing is left of a set; the assignment is then of no use.
        """
        streams = set(terms[0].streams)
        if any(self.methods.get(stream) is SamplingMethod.NONE for stream in streams):
            return False
        for other in [each for each in self.sets if streams & set(each[0].streams)]:
            self.sets.remove(other)
            terms = joined(other, terms)
            if not terms:
                return False
            streams = set(terms[0].streams)
        self.sets.append(terms)
        self.methods |= dict.fromkeys(streams, SamplingMethod.GROUPS)
        return True


@dataclass(frozen=True, slots=True)
class Wishes:
    """What queries ask for of a tree.

    Attributes:
        method: the method that DEFINE names; None to choose.
        sets: the terms of SAMPLE BY, for nodes of the tree.
        min_rate: the least rate that they allow; 0 for any.
    """

    method: SamplingMethod | None = None
    sets: Sequence[tuple[TreeNode, Terms]] = ()
    min_rate: float = 0.0


def assign(tree: TreeNode, sets: CompatibleSets, wishes: Wishes, assignment: Assignment) -> bool:
    """Add the leaves of ``tree`` to an assignment.

    Return False if they do not go with the others.
    """
    if wishes.method is SamplingMethod.NONE:
        return all(assignment.keep_all(stream) for stream in tree.streams)
    if wishes.method is SamplingMethod.TUPLES:
        return all(assignment.by_tuples(stream, always=True) for stream in tree.streams)
    wished = next((terms for node, terms in wishes.sets if node is tree), None)
    if wished is not None:
        return assignment.by_groups(wished)
    found = sets.of(tree)
    below = [(node, terms) for node, terms in wishes.sets if tree.is_above(node)]
    if found is ALL and below and isinstance(tree.node, Merge):
        # What one input is sampled by, all of them are.
        found = sets.of_union(tree)
    if found is ALL:
        if not below:
            return all(assignment.by_tuples(stream) for stream in tree.streams)
    elif found:
        lifted = _lifted(found, [terms for _, terms in below]) if below else found
        if lifted:
            return assignment.by_groups(lifted)
    return all(assign(each, sets, wishes, assignment) for each in tree.inputs)


def _lifted(found: Terms, wished: Sequence[Terms]) -> Terms:
    """Return the terms of a node that are those wished for at the nodes below; () if none are."""
    result: tuple[Term, ...] = ()
    for number, terms in enumerate(wished):
        lifted = tuple(_lifted_term(found, term) for term in terms)
        made = tuple(term for term in lifted if term is not None)
        if len(made) < len(terms) or (number > 0 and set(made) != set(result)):
            return ()
        result = made
    return result


def _lifted_term(found: Terms, wished: Term) -> Term | None:
    for term in found:
        own = term.of(wished.streams)
        if own.bases != wished.bases:
            continue
        is_same_value = dict(own.bases).items() <= dict(term.bases).items()
        if meet(own.cut, wished.cut) == wished.cut and (is_same_value or wished.cut == WHOLE):
            return Term(term.bases, wished.cut)
    return None


@dataclass(frozen=True, slots=True)
class Choice:
    """The scheme of one tree on its own.

    Attributes:
        tree: the tree, with the names of its streams.
        is_assigned: whether its leaves go together.
        judge: what the scheme makes of its nodes.
        assignment: the methods and sets of its streams.
    """

    tree: TreeNode
    is_assigned: bool
    judge: Judge
    assignment: Assignment

    @property
    def is_sound(self) -> bool:
        """Whether the scheme breaks no node."""
        return self.is_assigned and not self.judge.breaches

    @property
    def whole_nodes(self) -> int:
        """The nodes whose rows are whole."""
        return sum(outcome.is_whole for outcome in self.judge.outcomes.values())


def choose(tree: TreeNode, sets: CompatibleSets, wishes: Wishes) -> Choice:
    """Return the scheme of a tree on its own."""
    assignment = Assignment()
    is_assigned = assign(tree, sets, wishes, assignment)
    for stream in tree.streams:
        assignment.methods.setdefault(stream, SamplingMethod.TUPLES)
    judge = Judge(sets, assignment.scheme)
    if wishes.method is not SamplingMethod.NONE:
        judge.judge(tree)
    return Choice(tree, is_assigned, judge, assignment)


def with_twins(choice: Choice, sets: CompatibleSets, packets: Callable[[str], object]) -> Choice:
    """Return a choice in which leaves without a set take that of another leaf of the same packets.

    A ratio of two estimates from the same sample is better than one from two samples.

    Args:
        choice: the choice.
        sets: the compatible sets of the tree.
        packets: returns what is equal for streams of the same packets.
    """
    assignment = choice.assignment.copy()
    for stream, method in choice.assignment.methods.items():
        if method is not SamplingMethod.TUPLES:
            continue
        for place, terms in enumerate(assignment.sets):
            twins = [s for s in terms[0].streams if packets(s) == packets(stream)]
            if twins:
                assignment.sets[place] = tuple(_beside(term, twins[0], stream) for term in terms)
                assignment.methods[stream] = SamplingMethod.GROUPS
                break
    if assignment.methods == choice.assignment.methods:
        return choice
    judge = Judge(sets, assignment.scheme)
    judge.judge(choice.tree)
    better = Choice(choice.tree, choice.is_assigned, judge, assignment)
    return better if better.is_sound else choice


def _beside(term: Term, stream: str, other: str) -> Term:
    """Return ``term`` with ``other`` as one more stream, which hashes what ``stream`` does."""
    bases = dict(term.bases)
    return Term(tuple(sorted({**bases, other: bases[stream]}.items())), term.cut)


def sets_by_stream(assignment: Assignment) -> Mapping[str, Terms]:
    """Return the set of each stream that is sampled by groups."""
    return {stream: terms for terms in assignment.sets for stream in terms[0].streams}
