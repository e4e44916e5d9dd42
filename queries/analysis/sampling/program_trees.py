"""The trees of a program: the LFTAs and aggregating nodes of each result, from left to right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.expressions.schema import free_name
from gscope.queries.plan.program import (
    AggregationNode,
    HftaNode,
    Input,
    JoinNode,
    Lfta,
    MergeNode,
    Program,
    QueryInput,
    RunningNode,
    StreamInput,
    node_inputs,
)
from gscope.queries.plan.window_node import WindowNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program_sampling import LeafSampling

_GROUPINGS = AggregationNode | RunningNode | WindowNode


def lftas_of(program: Program, source: Input) -> list[str]:
    """Return the LFTAs of the leaves of a tree, from left to right."""
    return [each.lfta for each in _walk(program, source) if isinstance(each, StreamInput)]


def nodes_of(program: Program, source: Input) -> list[HftaNode]:
    """Return the nodes of a tree, each after its inputs, from left to right."""
    return [
        program.node(each.query) for each in _walk(program, source) if isinstance(each, QueryInput)
    ]


def groupings_of(program: Program, source: Input) -> list[str]:
    """Return the nodes of a tree that aggregate, each after its inputs, from left to right."""
    return [n.query for n in nodes_of(program, source) if isinstance(n, _GROUPINGS)]


def _walk(program: Program, source: Input) -> Iterator[Input]:
    if isinstance(source, QueryInput):
        for each in node_inputs(program.node(source.query)):
            yield from _walk(program, each)
    yield source


@dataclass(slots=True)
class Instances:
    """A program in which each result reads its own choice of instances of LFTAs and nodes.

    Attributes:
        program: the program in which results share all that is equal.
        lftas: the LFTAs so far, by the stream that they make.
        nodes: the nodes so far, by their original and the streams of their leaves.
        names: the nodes that keep their names, because they make a result.
        taken: the names in use.
    """

    program: Program
    lftas: dict[str, Lfta]
    nodes: dict[tuple[str, tuple[str, ...]], HftaNode]
    names: Mapping[tuple[str, tuple[str, ...]], str]
    taken: set[str]

    @classmethod
    def of(
        cls, program: Program, trees: Mapping[str, Sequence[str]]
    ) -> tuple[Program, dict[str, str]]:
        """Return the program, and the name of the LFTA that makes each stream.

        Args:
            program: the program in which results share all that is equal.
            trees: for each result the stream of each leaf, from left to right.
        """
        names = {
            (source.query, tuple(trees[name])): source.query
            for name, source in program.results
            if isinstance(source, QueryInput)
        }
        made = cls(program, {}, {}, names, set(names.values()))
        results = tuple(
            (name, made._copied(source, iter(trees[name]))) for name, source in program.results
        )
        order = {node.query: place for place, node in enumerate(program.nodes)}
        nodes = sorted(made.nodes.items(), key=lambda item: order[item[0][0]])
        first = {lfta.name: place for place, lfta in enumerate(program.lftas)}
        lftas = sorted(made.lftas.items(), key=lambda item: first[lfta_of(item[0])])
        changed = replace(
            program,
            lftas=tuple(lfta for _, lfta in lftas),
            nodes=tuple(node for _, node in nodes),
            results=results,
            schemas=(*program.schemas, *made._schemas_of_copies()),
        )
        return changed, {stream: lfta.name for stream, lfta in made.lftas.items()}

    def _schemas_of_copies(self) -> list[tuple[str, Schema]]:
        known = dict(self.program.schemas)
        return [
            (node.query, known[original])
            for (original, _), node in self.nodes.items()
            if node.query != original and original in known
        ]

    def _copied(self, source: Input, streams: Iterator[str]) -> Input:
        if isinstance(source, StreamInput):
            return StreamInput(self._lfta(source.lfta, next(streams)).name)
        leaves = [next(streams) for _ in lftas_of(self.program, source)]
        key = (source.query, tuple(leaves))
        if key not in self.nodes:
            node = self.program.node(source.query)
            own = iter(leaves)
            inputs = tuple(self._copied(each, own) for each in node_inputs(node))
            name = self.names.get(key) or self._free(source.query)
            self.taken.add(name)
            self.nodes[key] = replace(_reading(node, inputs), query=name)
        return QueryInput(self.nodes[key].query)

    def _lfta(self, name: str, stream: str) -> Lfta:
        if stream not in self.lftas:
            lfta = self.program.lfta(name)
            used = {each.name for each in self.lftas.values()}
            own = free_name(name, used | {e.name for e in self.program.lftas} - {name})
            self.lftas[stream] = replace(lfta, name=own)
        return self.lftas[stream]

    def _free(self, query: str) -> str:
        """Return the name of a node; a copy has that of no other query."""
        queries = {name for name, _ in self.program.schemas}
        nodes = {node.query for node in self.program.nodes}
        return free_name(query, self.taken | (queries | nodes) - {query})


def with_sampling(program: Program, sampling: Mapping[str, LeafSampling]) -> Program:
    """Return ``program`` with what each LFTA keeps, by the name of the LFTA."""
    return replace(
        program,
        lftas=tuple(replace(lfta, sampling=sampling.get(lfta.name)) for lfta in program.lftas),
    )


def instance(lfta: str, number: int) -> str:
    """Return the name of the stream of an instance of an LFTA; 0 is the LFTA itself."""
    return f"{lfta}#{number}" if number else lfta


def lfta_of(stream: str) -> str:
    """Return the LFTA whose instance makes a stream."""
    return stream.partition("#")[0]


def _reading(node: HftaNode, inputs: Sequence[Input]) -> HftaNode:
    if isinstance(node, MergeNode):
        return replace(node, inputs=tuple(inputs))
    if isinstance(node, JoinNode):
        left, right = inputs
        return replace(node, inputs=(left, right))
    (only,) = inputs
    return replace(node, input=only)
