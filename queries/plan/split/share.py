"""Sharing between queries: equal parts become one LFTA and one HFTA node.

Queries of a large set have much in common, above all their parts: the flows that one query counts
are the flows that another compares. Each would cost a group table, a stream and a step of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.plan.program import (
    HftaNode,
    Input,
    JoinNode,
    Lfta,
    MergeNode,
    Program,
    QueryInput,
    StreamInput,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def share(program: Program) -> Program:
    """Return ``program`` without LFTAs and nodes that equal an earlier one but for their names.

    Delivered results keep their names, so that no two of them become one.

        flows_1 = LFTA a, counts_1 = node over a, counts_2 = node over b; LFTA b is as a
        →  LFTA a, counts_1 = node over a; readers of counts_2 read counts_1
    """
    lftas, same_lfta = _shared_lftas(program)
    nodes, same_node = _shared_nodes(program, same_lfta)
    results = tuple(
        (name, _input(source, same_lfta, same_node)) for name, source in program.results
    )
    return replace(program, lftas=lftas, nodes=nodes, results=results)


def _shared_lftas(program: Program) -> tuple[tuple[Lfta, ...], dict[str, str]]:
    """Return the LFTAs that remain, and by which of them each LFTA is replaced."""
    delivered = {source for _, source in program.results}
    first: dict[Lfta, Lfta] = {}
    same: dict[str, str] = {}
    for lfta in program.lftas:
        # A stream that is delivered as a result has a reader of its own.
        is_answer = StreamInput(lfta.name) in delivered
        nameless = lfta if is_answer else replace(lfta, name="", query="")
        same[lfta.name] = first.setdefault(nameless, lfta).name
    return tuple(first.values()), same


def _shared_nodes(
    program: Program, same_lfta: Mapping[str, str]
) -> tuple[tuple[HftaNode, ...], dict[str, str]]:
    """Return the nodes that remain, and by which of them each node is replaced."""
    delivered = {source.query for _, source in program.results if isinstance(source, QueryInput)}
    kept: list[HftaNode] = []
    places: dict[HftaNode, int] = {}
    place_of: dict[str, int] = {}
    same_node: dict[str, str] = {}
    for original in program.nodes:
        same_node = {query: kept[place].query for query, place in place_of.items()}
        node = _reading(original, same_lfta, same_node)
        nameless = replace(node, query="")
        place = places.get(nameless)
        if place is None or {node.query, kept[place].query} <= delivered:
            places.setdefault(nameless, len(kept))
            place = len(kept)
            kept.append(node)
        elif node.query in delivered:
            kept[place] = replace(kept[place], query=node.query)
        place_of[node.query] = place
    same_node = {query: kept[place].query for query, place in place_of.items()}
    same_stream = {lfta: lfta for lfta in same_lfta.values()}
    return tuple(_reading(node, same_stream, same_node) for node in kept), same_node


def _reading(
    node: HftaNode, same_lfta: Mapping[str, str], same_node: Mapping[str, str]
) -> HftaNode:
    """Return ``node`` with inputs that remain."""
    if isinstance(node, MergeNode):
        return replace(node, inputs=tuple(_input(i, same_lfta, same_node) for i in node.inputs))
    if isinstance(node, JoinNode):
        left, right = (_input(i, same_lfta, same_node) for i in node.inputs)
        return replace(node, inputs=(left, right))
    return replace(node, input=_input(node.input, same_lfta, same_node))


def _input(source: Input, same_lfta: Mapping[str, str], same_node: Mapping[str, str]) -> Input:
    match source:
        case StreamInput(lfta=name):
            return StreamInput(same_lfta[name])
        case QueryInput(query=name):
            return QueryInput(same_node.get(name, name))
