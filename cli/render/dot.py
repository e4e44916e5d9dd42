"""A program as a graph in the DOT language of Graphviz: where tuples come from and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.queries.plan.program import JoinNode, MergeNode, StreamInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.plan.program import Input, Program

_WIDTH = 60
_SHAPES = {"interface": "cds", "lfta": "box", "hfta": "box", "result": "note"}


def as_dot(program: Program, explanation: dict[str, Any], anywhere: str) -> Iterator[str]:
    """Yield the lines of a directed graph: interfaces, LFTAs, HFTA nodes and results.

    Args:
        program: the program to draw.
        explanation: the explanation of that program, whose texts label the nodes.
        anywhere: the label of the interface if none is known.
    """
    yield "digraph gscope {"
    yield "  rankdir=LR;"
    yield '  node [fontname="monospace", fontsize=10]; edge [fontname="monospace", fontsize=9];'
    anywhere_else = () if all(lfta.interfaces for lfta in program.lftas) else (anywhere,)
    named = (name for lfta in program.lftas for name in lfta.interfaces)
    for interface in dict.fromkeys((*program.interfaces, *named, *anywhere_else)):
        yield _node("interface", interface, [interface])
    yield "  subgraph cluster_lftas {"
    yield '    label="LFTAs, in the capture daemon";'
    for entry in explanation["lftas"]:
        yield "  " + _node("lfta", entry["name"], [f"LFTA {entry['name']}", *_lines(entry)])
    yield "  }"
    if explanation["hftas"]:
        yield "  subgraph cluster_hftas {"
        yield '    label="HFTAs, on Spark";'
        for entry in explanation["hftas"]:
            title = f"{entry['operator']} {entry['name']}"
            yield "  " + _node("hfta", entry["name"], [title, *_lines(entry)])
        yield "  }"
    for query, _ in program.results:
        yield _node("result", query, [f"result {query}"])
    yield from _edges(program, anywhere)
    yield "}"


def _edges(program: Program, anywhere: str) -> Iterator[str]:
    for lfta in program.lftas:
        for interface in lfta.interfaces or (anywhere,):
            yield _edge(_name("interface", interface), _name("lfta", lfta.name), lfta.protocol)
    for node in program.nodes:
        inputs = node.inputs if isinstance(node, MergeNode | JoinNode) else (node.input,)
        for source in inputs:
            yield _edge(_of(source), _name("hfta", node.query), "")
    for query, source in program.results:
        yield _edge(_of(source), _name("result", query), "")


def _of(source: Input) -> str:
    if isinstance(source, StreamInput):
        return _name("lfta", source.lfta)
    return _name("hfta", source.query)


def _lines(entry: dict[str, Any]) -> Iterator[str]:
    """Return the main facts of a node: what it keeps, groups and computes, and its state bound."""
    for key in (
        "predicate",
        "epochs",
        "interval",
        "keys",
        "partials",
        "aggregates",
        "having",
        "state",
        "warning",
    ):
        value = entry.get(key)
        text = ", ".join(value) if isinstance(value, list) else value
        if text:
            yield from _wrapped(f"{key}: {text}")


def _wrapped(text: str) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(line) + len(word) >= _WIDTH:
            yield line
            line = "  "
        line += word if not line.strip() else f" {word}"
    yield line


def _node(kind: str, name: str, lines: list[str]) -> str:
    label = "".join(f"{_escaped(line)}\\l" for line in lines)
    return f'  {_name(kind, name)} [shape={_SHAPES[kind]}, label="{label}"];'


def _edge(tail: str, head: str, label: str) -> str:
    return f'  {tail} -> {head} [label="{_escaped(label)}"];'


def _name(kind: str, name: str) -> str:
    return f'"{kind}:{_escaped(name)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
