"""Programs for a run and its hosts if the hosts answer queries themselves.

Packets are divided among hosts by a set. A query that is compatible with the set is *answered on
hosts*: each host evaluates it over its own packets, and the run reads the rows of all hosts as one
stream, as it reads the rows of LFTAs. Only the last of such queries, those that are delivered or
that the run's own operators read, send rows. Everything else stays with the run::

    flows → heavy → pairs    flows, heavy compatible; pairs not
    each host                LFTA flows, operators flows and heavy, stream heavy.answers
    the run                  operator pairs over the streams heavy.answers of all hosts

If such a query has ORDER BY … LIMIT, each host sends the first rows of its own epochs, and the run
chooses the first of all hosts, as one operator::

    top                      the first 10 rows of each epoch
    each host                LFTA top, operator top, stream top.answers: at most 10 rows an epoch
    the run                  operator top, a ``TopNode`` over the streams top.answers of all hosts

Source: "Query-aware partitioning for monitoring massive network data streams" (SIGMOD 2008), §5.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Column, NamedExpression, walk
from gscope.queries.plan.lookups import lookup_functions
from gscope.queries.plan.packet_columns import PacketColumns
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    Lfta,
    MergeNode,
    QueryInput,
    StreamInput,
    TopNode,
    WatchlistJoinNode,
    node_inputs,
)
from gscope.queries.plan.program_file import ProgramWriter
from gscope.queries.plan.program_partitioning import undivided
from gscope.queries.plan.program_parts import read_lftas, with_inputs
from gscope.queries.plan.row_order import orders_epochs
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gscope.queries.plan.program import HftaNode, Input, Program
    from gscope.queries.plan.row_order import Order

SUFFIX = ".answers"
"""Ends the name of a stream of answers."""


@dataclass(frozen=True, slots=True)
class HostPlan:
    """How a program is shared between a run and its hosts.

    Attributes:
        run: what the run executes: the other operators, over the streams of answers.
        answered: the operators whose rows each host sends.
        kept: the operators that the run executes, each with the reason.
        chosen: those of ``answered`` of which each host sends the first rows of an epoch, and the
            run chooses the first of all hosts.
    """

    run: Program
    answered: tuple[str, ...]
    kept: Mapping[str, str]
    chosen: tuple[str, ...] = ()


def host_plan(program: Program, on_hosts: Collection[str], hosts: Collection[str]) -> HostPlan:
    """Return how ``program`` is shared between a run and its hosts.

    Args:
        program: all queries, over the interfaces of all hosts.
        on_hosts: the queries that the set permits to be answered on hosts.
        hosts: the names of the hosts.
    """
    kept: dict[str, str] = {}
    chosen: list[str] = []
    for node in program.nodes:
        if reason := _obstacle(program, node, on_hosts, hosts, kept, chosen):
            kept[node.query] = reason
        elif first_rows(node) is not None:
            chosen.append(node.query)
    read = [source for _, source in program.results]
    read += [i for node in program.nodes if node.query in kept for i in node_inputs(node)]
    wanted = {i.query for i in read if isinstance(i, QueryInput)} - kept.keys()
    answered = tuple(node.query for node in program.nodes if node.query in wanted)
    run = run_program(program, answered)
    return HostPlan(run, answered, kept, tuple(each for each in chosen if each in answered))


def run_program(program: Program, answered: Collection[str]) -> Program:
    """Return what the run executes if each host answers ``answered``."""
    if not answered:
        return program
    streams = _answer_streams(program, answered)
    on_hosts = with_inputs(program, answered)
    kept = [node for node in program.nodes if node.query not in on_hosts]
    tops = [
        TopNode(node.query, StreamInput(streams[node.query].name), order, node.schema)
        for node in program.nodes
        if node.query in streams and (order := first_rows(node)) is not None
    ]
    chosen = {node.query for node in tops}

    def moved(source: Input) -> Input:
        if isinstance(source, QueryInput) and source.query in streams.keys() - chosen:
            return StreamInput(streams[source.query].name)
        return source

    nodes = (*tops, *(_reading(node, tuple(map(moved, node_inputs(node)))) for node in kept))
    results = tuple((query, moved(source)) for query, source in program.results)
    lftas = read_lftas(program, nodes, [source for _, source in results])
    return replace(program, lftas=(*lftas, *streams.values()), nodes=nodes, results=results)


def host_program(program: Program, answered: Collection[str]) -> Program:
    """Return what each host executes if it answers ``answered``, over the interfaces of all hosts.

    Raises:
        KeyError: the program has no such operator.
    """
    below = with_inputs(program, answered)
    streams = _answer_streams(program, answered)
    others = run_program(program, answered).lftas
    served = (*(each for each in others if each.answers is None), *streams.values())
    nodes = tuple(node for node in program.nodes if node.query in below)
    names = {each.name for each in (*read_lftas(program, nodes, ()), *served)}
    return replace(
        program,
        lftas=tuple(each for each in program.lftas if each.name in names),
        nodes=nodes,
        results=tuple((query, QueryInput(query)) for query in streams),
        schemas=tuple((query, program.schema(query)) for query in streams),
        orders=(),
        served=served,
    )


def of_host(program: Program, host: str) -> Program:
    """Return the program of one host: only its own interfaces are captured.

    All LFTAs stay in it, so that the reader finds each; those that read other hosts alone have no
    interface. Answers are one stream, whatever the number of interfaces.
    """
    own = tuple(name for name in program.interfaces if name.startswith(f"{host}."))

    def restricted(lfta: Lfta) -> Lfta:
        names = tuple(name for name in lfta.interfaces if name in own)
        return replace(lfta, interfaces=names if lfta.answers is None else names[:1])

    return replace(
        program,
        interfaces=own,
        lftas=tuple(map(restricted, program.lftas)),
        served=None if program.served is None else tuple(map(restricted, program.served)),
    )


def _obstacle(
    program: Program,
    node: HftaNode,
    on_hosts: Collection[str],
    hosts: Collection[str],
    kept: Mapping[str, str],
    chosen: Collection[str],
) -> str:
    """Return why hosts cannot answer an operator; "" if they can."""
    below = [i.query for i in node_inputs(node) if isinstance(i, QueryInput)]
    if others := [query for query in below if query in kept]:
        return f"{others[0]} is evaluated by the run"
    if others := [query for query in below if query in chosen]:
        return f"the first rows of {others[0]} are chosen by the run"
    order = first_rows(node) or program.order(node.query)
    if order is not None and not orders_epochs(order, program.schema(node.query)):
        return "its order or LIMIT is that of the whole input"
    if _query_of(program, node) not in on_hosts:
        return "it needs packets of several hosts"
    if isinstance(node, WatchlistJoinNode):
        return "its table is a file of the run's host"
    if lookup_functions(node):
        return "it looks values up in a file of the run's host"
    if isinstance(node, SampleNode):
        return "it samples the packets of all hosts"
    if not program.schema(node.query).temporal:
        return "no column of its answer rises with time"
    lftas = [i.lfta for i in node_inputs(node) if isinstance(i, StreamInput)]
    for name in lftas:
        interfaces = program.lfta(name).interfaces
        if missing := [h for h in hosts if not any(i.startswith(f"{h}.") for i in interfaces)]:
            return f"it reads no interface of {missing[0]}"
    return ""


def first_rows(node: HftaNode) -> Order | None:
    """Return the order whose first rows of each epoch an operator keeps; None if it keeps all."""
    match node:
        case TopNode(order=order):
            return order
        case AggregationNode(top=order) | WindowNode(top=order):
            return order
    return None


def _query_of(program: Program, node: HftaNode) -> str:
    """Return the query that an operator is, or is a part of: ``q`` of the part ``q.rows``."""
    queries = {name for name, _ in program.schemas}
    name = node.query
    while name not in queries:
        name = name.rpartition(".")[0]
    return name


def _answer_streams(program: Program, answered: Collection[str]) -> dict[str, Lfta]:
    """Return the stream of answers of each operator, by its name."""
    columns = PacketColumns(program)
    return {query: _answer_stream(program, query, columns) for query in answered}


def _answer_stream(program: Program, query: str, columns: PacketColumns) -> Lfta:
    schema = program.schema(query)
    below = with_inputs(program, (query,))
    nodes = [node for node in program.nodes if node.query in below]
    lftas = read_lftas(program, nodes, ())
    known = columns.of(QueryInput(query))
    read = {name for lfta in lftas for name in lfta.interfaces}
    return Lfta(
        name=f"{query}{SUFFIX}",
        query=query,
        protocol="",
        interfaces=tuple(name for name in program.interfaces if name in read),
        predicate=None,
        keys=(),
        epoch=None,
        partials=(),
        columns=tuple(
            NamedExpression(column.name, known[column.name])
            for column in schema.temporal
            if column.name in known
            and not any(isinstance(part, Column) for part in walk(known[column.name]))
        ),
        schema=schema,
        answers=_digest(program, nodes, lftas),
    )


def _digest(program: Program, nodes: Iterable[HftaNode], lftas: Iterable[Lfta]) -> str:
    """Return the digest of everything that decides the rows of operators."""
    writer = ProgramWriter()
    plain = undivided(program)
    tree = [
        *(writer.plain(node) for node in nodes),
        *(writer.plain(replace(plain.lfta(each.name), interfaces=())) for each in lftas),
    ]
    meaning = [[file.digest for file in program.user_files], writer.calls, tree]
    return hashlib.sha256(json.dumps(meaning).encode()).hexdigest()


def _reading(node: HftaNode, sources: tuple[Input, ...]) -> HftaNode:
    """Return ``node`` over other inputs."""
    if isinstance(node, MergeNode):
        return replace(node, inputs=sources)
    if isinstance(node, JoinNode):
        return replace(node, inputs=(sources[0], sources[1]))
    return replace(node, input=sources[0])
