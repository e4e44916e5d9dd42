"""The schemes of a query set: one for each LFTA, whichever results read it.

Each result chooses a scheme on its own (``choose``). Results that read one LFTA get the meet of
their sets; where nothing would be left, or a result would break, the later one reads an instance of
the LFTA of its own. No result is broken by another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import GsqlError
from gscope.queries.analysis.lineage.compatible import CompatibleSets
from gscope.queries.analysis.lineage.forest import MAX_LEAVES, grown, leaf_count
from gscope.queries.analysis.sampling.choose import (
    Assignment,
    Choice,
    Wishes,
    choose,
    with_twins,
)
from gscope.queries.analysis.sampling.hints import check_hints, wishes_of
from gscope.queries.analysis.sampling.program_trees import instance, lfta_of, lftas_of
from gscope.queries.analysis.sampling.rules import ORDER, Breach
from gscope.queries.analysis.sampling.standings import Judge
from gscope.queries.plan.program_sampling import SamplingMethod
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.plan.logical import LogicalPlan, LogicalQuery
    from gscope.queries.plan.program import Program


@dataclass(frozen=True, slots=True)
class PlacedTree:
    """A result with its place among the streams of the query set.

    Attributes:
        result: the name of the result.
        streams: the stream of each leaf, from left to right.
        choice: the scheme that it chose on its own, over these streams.
        wishes: what its queries ask for.
        refusal: the reasons why it is not sampled; () if it is.
    """

    result: str
    streams: tuple[str, ...]
    choice: Choice | None
    wishes: Wishes
    refusal: tuple[str, ...] = ()

    @property
    def tree(self) -> TreeNode | None:
        """The tree; None if it is too large to be analysed."""
        return None if self.choice is None else self.choice.tree


@dataclass(slots=True)
class QuerySetSampling:
    """The schemes of the results that were added so far.

    Attributes:
        plan: the queries.
        program: the program, in which results share all that is equal.
        sets: the compatible sets of all trees.
        assignment: the methods and sets of all streams.
        placed: the results.
    """

    plan: LogicalPlan
    program: Program
    sets: CompatibleSets
    assignment: Assignment
    placed: list[PlacedTree]

    @classmethod
    def of(cls, plan: LogicalPlan, program: Program) -> QuerySetSampling:
        """Return the schemes of all results of a program.

        Raises:
            GsqlError: a hint of a query is incompatible with it or with those that read it.
        """
        made = cls(plan, program, CompatibleSets(), Assignment(), [])
        for result, _ in program.results:
            made._add(result)
        return made

    @property
    def queries(self) -> dict[str, LogicalQuery]:
        """The queries by name."""
        return {query.name: query for query in self.plan.queries}

    def judge(self, placed: PlacedTree) -> Judge:
        """Return what the schemes of all streams make of a result."""
        assert placed.tree is not None
        judge = Judge(self.sets, self.assignment.scheme)
        judge.judge(placed.tree)
        return judge

    def _add(self, result: str) -> None:
        lftas = self._lftas(result)
        if lftas is None:
            self._add_large(result)
            return
        own = self._on_its_own(result, lftas)
        for number in range(self._instances() + 2):
            if self._place(result, [self._moved(stream, number) for stream in own]):
                return
        message = f"{result}: a tree over streams of its own has no scheme"
        raise AssertionError(message)

    def _lftas(self, result: str) -> list[str] | None:
        """Return the LFTA of each leaf; None if they are too many."""
        if leaf_count(result, self.queries) > MAX_LEAVES:
            return None
        return lftas_of(self.program, dict(self.program.results)[result])

    def _add_large(self, result: str) -> None:
        """Add a result with too many leaves, which is not sampled."""
        reason = f"{result}: its tree has more than {MAX_LEAVES} leaves"
        self.placed.append(PlacedTree(result, (), None, Wishes(), (reason,)))

    def _on_its_own(self, result: str, lftas: Sequence[str]) -> list[str]:
        """Return the stream of each leaf as the result on its own would choose them.

        Leaves of one LFTA are one stream, unless only different terms make more nodes whole.
        """
        found: list[Choice] = []
        for streams in [lftas, numbered(lftas)] if has_repeats(lftas) else [lftas]:
            try:
                found.append(self._choice(result, streams))
            except GsqlError:
                # A term of SAMPLE BY may be one only of different streams, or only of one.
                if streams == numbered(lftas) and not found:
                    raise
        best = max(found, key=lambda each: (each.is_sound, each.whole_nodes))
        check_hints(best, self.sets)
        return [leaf.stream for leaf in best.tree.leaves()]

    def _choice(self, result: str, streams: Sequence[str]) -> Choice:
        tree = grown(result, self.queries, streams)
        choice = choose(tree, self.sets, wishes_of(tree, self.sets))
        if any(self.program.lfta(lfta_of(stream)).declared for stream in streams):
            choice.judge.breaches.append(Breach(tree, ORDER))
        return with_twins(choice, self.sets, self._packets) if choice.is_sound else choice

    def _packets(self, stream: str) -> object:
        lfta = self.program.lfta(lfta_of(stream))
        return lfta.protocol, lfta.interfaces, lfta.predicate

    def _instances(self) -> int:
        """Return the greatest number of an instance so far."""
        return max((int(s.partition("#")[2] or 0) for s in self.assignment.methods), default=0)

    def _moved(self, stream: str, by: int) -> str:
        return instance(lfta_of(stream), int(stream.partition("#")[2] or 0) + by)

    def _place(self, result: str, streams: Sequence[str]) -> bool:
        """Add a result over these streams; return False if it does not go with the others there."""
        choice = self._choice(result, streams)
        wishes = wishes_of(choice.tree, self.sets)
        assignment = self.assignment.copy()
        refusal: tuple[str, ...] = ()
        if wishes.method is SamplingMethod.NONE:
            refusal = (f"{result}: NOT SAMPLED",)
        elif not choice.is_sound:
            refusal = tuple(dict.fromkeys(breach.text for breach in choice.judge.breaches))
        if refusal:
            goes = all(assignment.keep_all(stream) for stream in choice.tree.streams)
        else:
            goes = _joined(assignment, choice, wishes)
        placed = PlacedTree(result, tuple(streams), choice, wishes, refusal)
        if not goes or not self._is_sound([*self.placed, placed], assignment, choice):
            return False
        self.assignment = assignment
        self.placed.append(placed)
        return True

    def _is_sound(
        self, placed: Sequence[PlacedTree], assignment: Assignment, changed: Choice
    ) -> bool:
        """Return whether no result is broken that shares a stream, or a set, with a new one."""
        touched = set(changed.tree.streams)
        for terms in assignment.sets:
            if touched & set(terms[0].streams):
                touched |= set(terms[0].streams)
        scheme = assignment.scheme
        for each in placed:
            if each.refusal or each.tree is None or not touched & set(each.tree.streams):
                continue
            judge = Judge(self.sets, scheme)
            judge.judge(each.tree)
            if judge.breaches:
                return False
            if any(set(scheme.terms(node.streams)) != set(t) for node, t in each.wishes.sets):
                return False
        return True


def has_repeats(lftas: Sequence[str]) -> bool:
    """Return whether several leaves have one LFTA."""
    return len(set(lftas)) < len(lftas)


def numbered(lftas: Sequence[str]) -> list[str]:
    """Return streams for leaves, all of them different."""
    seen: dict[str, int] = {}
    streams = []
    for lfta in lftas:
        seen[lfta] = seen.get(lfta, -1) + 1
        streams.append(instance(lfta, seen[lfta]))
    return streams


def _joined(assignment: Assignment, choice: Choice, wishes: Wishes) -> bool:
    """Add the scheme of a result to an assignment; return False if they do not go together."""
    by_tuples = wishes.method is SamplingMethod.TUPLES
    for stream, method in choice.assignment.methods.items():
        if method is SamplingMethod.TUPLES and not assignment.by_tuples(stream, always=by_tuples):
            return False
    if not by_tuples and any(
        assignment.methods[s] is SamplingMethod.NONE
        for s in choice.tree.streams
        if s in assignment.methods
    ):
        return False
    return all(assignment.by_groups(terms) for terms in choice.assignment.sets)
