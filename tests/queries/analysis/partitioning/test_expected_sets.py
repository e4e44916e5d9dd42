"""The best set of each published and library query over four hosts, and what does not run on all.

``expected_sets.txt`` has a line for each: the query, the set, and the operators that run elsewhere
(``split`` or ``central``). Sets of published queries are those of the publication and of its theory
where it has them: subnet_stats and jitter, flow_pairs, suspicious, tcp_flows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import gscope.queries.library
from gscope.queries.analysis.partitioning.explained import explain_partitioning
from gscope.queries.compile import CompileContext, QueryText, compile_queries

LIBRARY = Path(gscope.queries.library.__file__).parent
LINES = Path(__file__).with_name("expected_sets.txt").read_text(encoding="utf-8").splitlines()
CONTEXT = CompileContext(
    interfaces=("main0", "main1", "control", "interface1", "interface2", "b", "c"),
    interface_sets={"main0_and_control": ("main0", "control"), "default": ("main0", "main1")},
)


def test_every_query_has_a_line() -> None:
    queries = [*LIBRARY.glob("published/*.gsql"), *LIBRARY.glob("*.gsql")]
    names = {path.relative_to(LIBRARY).with_suffix("").as_posix() for path in queries}
    assert names == {line.split(" | ")[0] for line in LINES}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split(" | ")[0])
def test_the_best_set_is_the_expected_one(line: str) -> None:
    name, expected, places = (each.strip() for each in line.split("|"))
    text = LIBRARY.joinpath(f"{name}.gsql").read_text(encoding="utf-8")
    compiled = compile_queries([QueryText(text, name)], CONTEXT)
    results = tuple(result for result, _ in compiled.program.results)
    shown = explain_partitioning(compiled.stages[0][1], results, 4)
    assert (", ".join(shown["set"]) or "-") == expected
    elsewhere = [
        f"{each['query']}/{each['operator']}:{each['place']}"
        for each in shown["operators"]
        if each["operator"] in ("groups", "join") and each["place"] != "hosts"
    ]
    assert " ".join(elsewhere) == places
