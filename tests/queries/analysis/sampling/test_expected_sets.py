"""The sets by which the published queries are sampled.

They are those that their publication and theory give them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import gscope.queries.library
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.show_expressions import show

PUBLISHED = Path(gscope.queries.library.__file__).parent / "published"
FOUR = "srcIP, destIP, srcPort, destPort"
SYN = f"{FOUR}, sequence_number + 1"
ANSWER = "destIP, srcIP, destPort, srcPort, ack_number"
TUPLES = "tuples"

EXPECTED: dict[str, dict[str, str]] = {
    "dup_ratio": {"dup_all_count": FOUR},
    "suspicious": {"suspicious": FOUR},
    "jitter": {"jitter.1": FOUR},
    "syn_ack_delay": {"syn_ack_delay.1": SYN, "syn_ack_delay.2": ANSWER},
    "matched_syn_ratio": {
        "all_syn_count": SYN,
        "matched_syn_count.1": SYN,
        "matched_syn_count.2": ANSWER,
    },
    "max_dups": {"flow_dup_count": "srcIP, destIP"},
    "heavy_flows": {"flows": "srcIP"},
    "flow_pairs": {"flows": "srcIP"},
    "full_flow": {"flow1": f"{FOUR}, protocol", "flow2": f"{FOUR}, protocol"},
    "subnet_stats": {"subnet_stats": "srcIP & 4294967280, destIP"},
    "traffic_share": {
        "on_c": "srcIP, destIP, id",
        "packets_of_b": "srcIP, destIP, id",
        "shared_packets.1": "srcIP, destIP, id",
    },
    "dup_seq": {"dup_seq": "srcIP, destIP"},
    "hostname_counts": {"hostname_counts": TUPLES},
    "flow_cnt": {"tcp_flows": "srcIP, destIP"},
    "all_syn_count": {"all_syn_count": TUPLES},
    "merged_tcp": {"merged_tcp.1": TUPLES, "merged_tcp.2": TUPLES},
    "snort_sources": {"snort_sources": "srcIP"},
    "snort_paned": {"snort_paned.sub": TUPLES},
}
SCALED = {
    "matched_syn_ratio": {"all_syn_count": ("cnt",), "matched_syn_count": ("cnt",)},
    "traffic_share": {"packets_of_b": ("cnt",), "shared_packets": ("cnt",)},
    "dup_ratio": {"dup_ratio": ("sum_dup_cnt", "sum_full_cnt")},
    "hostname_counts": {"hostname_counts": ("cnt",)},
    "snort_paned": {"snort_paned.sub": ("cnt",)},
}
"""The aggregates that nodes scale; those of other queries scale none."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_published_query_is_sampled_by_its_set(name: str) -> None:
    text = (PUBLISHED / f"{name}.gsql").read_text(encoding="utf-8")
    context = CompileContext(
        interfaces=("main0", "main1", "control", "interface1", "interface2", "b", "c"),
        interface_sets={"main0_and_control": ("main0", "control")},
        samples=True,
    )
    program = compile_queries([QueryText(text, name)], context).program
    found = {
        lfta.name: ", ".join(map(show, lfta.sampling.terms)) or lfta.sampling.method.value
        for lfta in program.lftas
        if lfta.sampling is not None
    }
    assert found == EXPECTED[name]
    (component,) = program.sampling
    assert set(component.lftas) == set(found)
    if name in SCALED or TUPLES not in found.values():
        scaled = {node.query: node.scaled for node in component.nodes if node.scaled}
        assert scaled == SCALED.get(name, {})
