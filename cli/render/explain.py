"""The explanation of a compiled query set: plain values for JSON, and the same as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from gscope.capture.lfta.codegen.predicate import shared_predicates
from gscope.capture.sources.af_packet.fanout_program import is_expressible
from gscope.queries.analysis.partitioning.explained import partitioning_lines
from gscope.queries.plan.explain.clocks import warning
from gscope.queries.plan.explain.show_partitions import show_fanout, show_stream_partitions
from gscope.queries.plan.explain.show_plans import (
    show_interval,
    show_keys,
    show_limit,
    show_query,
    show_schema,
)
from gscope.queries.plan.explain.show_sampling import sampling_lines, show_sampling
from gscope.queries.plan.explain.show_sampling_operator import show_sampling_operator
from gscope.queries.plan.explain.show_windows import show_slices, show_window, slice_costs
from gscope.queries.plan.explain.state_bounds import (
    delivery_bound,
    lfta_state_bound,
    node_state_bound,
)
from gscope.queries.plan.partitioning.chains import partitioned_plan
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    RunningNode,
    SelectionNode,
    StreamInput,
    TopNode,
    WatchlistJoinNode,
)
from gscope.queries.plan.row_order import visible
from gscope.queries.plan.sampling_operator import SampleNode, show_pre_sample
from gscope.queries.plan.show_expressions import show, show_equalities, show_named, show_of_sides
from gscope.queries.plan.split.kernel_filter import (
    TRUE,
    needed_by_any,
    needed_packets,
    show_condition,
)
from gscope.queries.plan.whole_input import unites_whole_inputs
from gscope.queries.plan.window_node import WindowNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.queries.compile import Compiled
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import HftaNode, Input, Lfta, Program
    from gscope.queries.plan.row_order import Order

ANY = "any interface"


def explain_compiled(compiled: Compiled) -> dict[str, Any]:
    """Return every stage, from the parsed texts to the split, as plain values."""
    program = compiled.program
    partitions = _partitions(program)
    return {
        "queries": [
            {
                "name": query.name,
                "text": query.text,
                **({"meaning": query.meaning} if query.meaning else {}),
                "columns": show_schema(visible(query.schema)),
            }
            for query in compiled.stages[0][1].queries
        ],
        "stages": [
            {
                "stage": name,
                "plans": {query.name: list(show_query(query)) for query in plan.queries},
            }
            for name, plan in compiled.stages
        ],
        "prefilter": [show(predicate) for predicate in shared_predicates(program.lftas)],
        "kernel_filter": _kernel_filters(program),
        "fanout": _fanout(program),
        "lftas": [
            _lfta(lfta, "no interface" if program.interfaces else ANY) | _slices(program, lfta)
            for lfta in program.lftas
        ],
        "hftas": [
            _node(node) | partitions.get(node.query, {}) | _warning(program, node)
            for node in program.nodes
        ],
        **({"lookups": dict(program.lookups)} if program.lookups else {}),
        "sampling": show_sampling(compiled.sampling, *compiled.moving),
        "results": {
            query: _input(source) + _delivered(program.order(query))
            for query, source in program.results
        },
    }


def spark_texts(program: Program) -> dict[str, str]:
    """Return the Spark SQL of each HFTA node, by query.

    ``input`` stands for the rows that are released to the node; ``input1``, ``input2``, … for those
    of each side of a merge, ``left`` and ``right`` for those of a join. A window that is assembled
    from slices has the text that makes these, and one over ``windows``, the groups of each window.
    """
    from gscope.engine.spark.lowering import lower
    from gscope.engine.spark.sql import aggregation, slices
    from gscope.engine.spark.sql.inputs import Sources

    texts: dict[str, str] = {}
    for node in program.nodes:
        sources = Sources(_source_names(node))
        if isinstance(node, WindowNode) and node.slices is not None:
            texts[f"{node.query}, slices"] = slices.lower(node, sources)
            texts[node.query] = aggregation.lower(node.aggregation, Sources(("windows",)))
        else:
            texts[node.query] = lower(node, sources)
    return texts


def _source_names(node: HftaNode) -> tuple[str, ...]:
    match node:
        case JoinNode():
            return "left", "right"
        case MergeNode():
            return tuple(f"input{side}" for side in range(1, 1 + len(node.inputs)))
        case _:
            return ("input",)


def as_text(explanation: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of an explanation for a reader."""
    for query in explanation["queries"]:
        yield f"Query {query['name']} ({query['columns']})"
        yield from _indented(query["text"].splitlines())
        if "meaning" in query:
            yield "  with aliases replaced:"
            yield from _indented(query["meaning"].splitlines(), 2)
    before: dict[str, list[str]] = {}
    for stage in explanation["stages"]:
        yield ""
        name = stage["stage"]
        yield "Plan" if name == "plan" else f"After {name}"
        for query, lines in stage["plans"].items():
            if before.get(query) == lines:
                continue
            yield f"  {query}"
            yield from _indented(lines, 2)
        before = stage["plans"]
    if explanation["prefilter"]:
        yield ""
        yield "Prefilter (predicates that several LFTAs share, each tested once per packet)"
        bits = enumerate(explanation["prefilter"])
        yield from _indented([f"bit {number:<6} {text}" for number, text in bits])
    if explanation["kernel_filter"]:
        yield ""
        yield (
            "Kernel filter (live: the kernel rejects packets that no LFTA can accept; they are "
            "not counted)"
        )
        yield from _indented([f"{of}: {text}" for of, text in explanation["kernel_filter"].items()])
    if explanation["fanout"]:
        yield ""
        yield "Fanout (live, with --fanout: how the kernel divides packets among threads)"
        yield from _indented([explanation["fanout"]])
    for title, entries in (("LFTA", explanation["lftas"]), ("HFTA", explanation["hftas"])):
        for entry in entries:
            yield ""
            yield f"{title} {entry['name']}"
            yield from _entries(entry)
    yield ""
    yield "Sampling (with --sample-rate)"
    yield from _indented(list(sampling_lines(explanation["sampling"])))
    if (partitioning := explanation.get("partitioning")) is not None:
        yield ""
        yield f"Partitioning (over {partitioning['hosts']} hosts)"
        yield from _indented(list(partitioning_lines(partitioning)))
    yield ""
    if lookups := explanation.get("lookups"):
        yield "Lookups (read again when a file changes)"
        yield from _indented([f"{name}  {path}" for name, path in lookups.items()])
        yield ""
    yield "Results"
    yield from _indented([f"{query} from {of}" for query, of in explanation["results"].items()])


def _partitions(program: Program) -> dict[str, dict[str, str]]:
    """Return how each HFTA node computes an epoch that several tasks share."""
    if program.partitioning is None:
        return {}
    from gscope.engine.spark.partitions.chain_operators import chain_operator

    plan = partitioned_plan(program, lambda node: chain_operator(program, node) is not None)
    return {each.query: {"runs": str(each)} for each in plan.placed}


def _kernel_filters(program: Program) -> dict[str, str]:
    """Return the kernel filter of each interface, without interfaces that may need every packet."""
    conditions = (
        {name: needed_packets(program.lftas, name) for name in program.interfaces}
        if program.interfaces
        else {ANY: needed_by_any(program.lftas)}
    )
    return {of: show_condition(each) for of, each in conditions.items() if each != TRUE}


def _fanout(program: Program) -> str:
    """Return how threads divide packets; "" if rows have no partitions, or are flow records."""
    divided = program.partitioning
    if divided is None or all(lfta.reads_flows for lfta in program.lftas):
        return ""
    return show_fanout(divided, is_expressible=is_expressible(divided.members))


def _lfta(lfta: Lfta, otherwise: str) -> dict[str, Any]:
    """Return the description of an LFTA; ``otherwise`` is its input if it names no interface."""
    return {
        "name": lfta.name,
        "reads": f"{lfta.protocol} on {', '.join(lfta.interfaces) or otherwise}",
        "predicate": _shown(lfta.predicate),
        "keys": show_named(lfta.keys),
        "epoch": lfta.epoch or "",
        "partials": [
            f"{p.name} := {p.op.value}({'*' if p.argument is None else show(p.argument)})"
            for p in lfta.partials
        ],
        "columns": show_named(lfta.columns),
        "orders": [
            f"{show(call)}: packets that violate it are discarded and counted"
            for call in lfta.declared
        ],
        "pre-sample": "" if lfta.pre_sample is None else show_pre_sample(lfta.pre_sample),
        "streams": list(lfta.streams),
        "stream": show_schema(lfta.stream_schema),
        "partitions": show_stream_partitions(lfta),
        "state": lfta_state_bound(lfta),
    }


def _slices(program: Program, lfta: Lfta) -> dict[str, Any]:
    """Return what the slices of an LFTA below windows are, who reads them, and what they cost."""
    costs = slice_costs(program, lfta)
    if costs is None:
        return {}
    return {
        "slices": costs.slices,
        "shared by": list(costs.queries) if len(costs.queries) > 1 else [],
        "cost": costs.text,
    }


def _warning(program: Program, node: HftaNode) -> dict[str, str]:
    text = warning(program, node)
    return {"warning": text} if text else {}


def _node(node: HftaNode) -> dict[str, Any]:
    common = {"stream": show_schema(node.schema), "state": node_state_bound(node)}
    match node:
        case MergeNode():
            return {
                "name": node.query,
                "operator": "merge",
                "reads": ", ".join(map(_input, node.inputs)),
                "on": "the whole input" if unites_whole_inputs(node) else ", ".join(node.on),
                "slack": str(node.slack),
                **common,
            }
        case JoinNode():
            left, right = node.predicates
            return {
                "name": node.query,
                "operator": node.kind.value.lower().replace("_", " "),
                "reads": ", ".join(map(_input, node.inputs)),
                "left": _shown(left),
                "right": _shown(right),
                "epochs": "" if node.interval else show_equalities([node.epochs]),
                "interval": show_interval(node.epochs, node.interval) if node.interval else "",
                "keys": show_equalities(node.keys),
                "residual": "" if node.residual is None else show_of_sides(node.residual),
                "columns": [f"{c.name} := {show_of_sides(c.expression)}" for c in node.columns],
                **common,
            }
        case WatchlistJoinNode():
            return {
                "name": node.query,
                "operator": "watchlist join",
                "reads": _input(node.input),
                "predicate": _shown(node.predicate),
                "watchlist": f"{node.watchlist.name} from {node.watchlist.path}",
                "keys": show_equalities(node.keys),
                "residual": "" if node.residual is None else show_of_sides(node.residual),
                "columns": [f"{c.name} := {show_of_sides(c.expression)}" for c in node.columns],
                **common,
            }
        case SelectionNode():
            return {
                "name": node.query,
                "operator": "selection",
                "reads": _input(node.input),
                "predicate": _shown(node.predicate),
                "columns": show_named(node.columns),
                **common,
            }
        case AggregationNode() | RunningNode():
            is_running = isinstance(node, RunningNode)
            return {
                "name": node.query,
                "operator": "running aggregation" if is_running else "aggregation",
                "reads": _input(node.input),
                "predicate": _shown(node.predicate),
                "keys": show_named(node.keys),
                "epoch": node.epoch,
                "aggregates": _aggregates(node),
                "running": [
                    f"{a.name} := {a.function}({', '.join([*a.inputs, *map(str, a.constants)])})"
                    for a in (node.running if isinstance(node, RunningNode) else ())
                ],
                "closing": show(node.closing) if isinstance(node, RunningNode) else "",
                "having": _shown(node.having),
                "columns": show_named(node.columns),
                **_top(node),
                **common,
            }
        case WindowNode():
            return {
                "name": node.query,
                "operator": "window",
                "reads": _input(node.input),
                "predicate": _shown(node.predicate),
                "window": show_window(node.window, node.unit_ns),
                "on": _shown(node.on),
                "slices": _window_slices(node),
                "keys": show_named(node.keys),
                "aggregates": _aggregates(node),
                "having": _shown(node.having),
                "columns": show_named(node.columns),
                **_top(node),
                **common,
            }
        case SampleNode():
            return {
                "name": node.query,
                "operator": "sampling",
                "reads": _input(node.input),
                "predicate": _shown(node.predicate),
                "keys": show_named(node.keys),
                "window": node.epoch,
                "order": "columns of the row" if node.order is None else show(node.order),
                "clauses": show_sampling_operator(node.sampling),
                "columns": show_named(node.columns),
                **common,
            }
        case TopNode():
            return {
                "name": node.query,
                "operator": "top",
                "reads": _input(node.input),
                **_order(node.order),
                **common,
            }
        case _:
            assert_never(node)


def _aggregates(node: AggregationNode | RunningNode | WindowNode) -> list[str]:
    return [
        f"{a.name} := {a.function}({', '.join([*map(show, a.arguments), *a.partials]) or '*'})"
        for a in node.aggregates
    ]


def _window_slices(node: WindowNode) -> str:
    """Return the slices of a window, and their number over input columns; "" if it keeps rows."""
    if node.slices is None:
        return ""
    lengths = show_slices(node.slices.slicing, node.unit_ns)
    if node.slices.is_merged:
        return lengths
    return f"{lengths}; number {show(node.slices.number)}; {show_named(node.slices.keys)}"


def _delivered(order: Order | None) -> str:
    """Return what delivery does with the rows of a result, "" for nothing."""
    text = "" if order is None else delivery_bound(order)
    return f"; {text}" if text else ""


def _top(node: AggregationNode | RunningNode | WindowNode) -> dict[str, Any]:
    top = None if isinstance(node, RunningNode) else node.top
    return {} if top is None else _order(top)


def _order(order: Order) -> dict[str, Any]:
    return {"order": show_keys(order), "limit": show_limit(order)}


def _input(source: Input) -> str:
    return f"LFTA {source.lfta}" if isinstance(source, StreamInput) else f"HFTA {source.query}"


def _shown(expression: Expression | None) -> str:
    return "" if expression is None else show(expression)


def _entries(entry: dict[str, Any]) -> Iterator[str]:
    for key, value in entry.items():
        if key == "clauses":
            texts = value
        else:
            texts = [", ".join(value) if isinstance(value, list) else value]
        if key != "name" and any(texts):
            yield f"  {key:<10} {texts[0]}"
            yield from (f"{'':<12} {text}" for text in texts[1:])


def _indented(lines: Sequence[str], depth: int = 1) -> Iterator[str]:
    return (f"{'  ' * depth}{line}" for line in lines)
