"""Fifty queries of the library as one query set for one interface, with unique names."""

from __future__ import annotations

import re
from pathlib import Path

LIBRARY = Path(__file__).parents[1] / "queries" / "library"

LEFT_OUT = {
    "full_flow": "reads other interfaces",
    "merged_tcp": "reads other interfaces",
    "traffic_share": "reads other interfaces",
    "union_filtered": "reads other interfaces",
    "pair_len": "its answer grows with the square of the traffic",
    "published/flow": "the library's flow without bytes",
    "all_syn_count": "a part of matched_syn_ratio",
    "matched_syn_count": "a part of matched_syn_ratio",
    "flows": "a part of flow_pairs",
    "tcp_flows": "a part of flow_cnt",
}
"""Files of the library that are not in the set, and the reason."""

_NAMED = re.compile(r"query_name\s+'(\w+)'")


def fifty_queries() -> dict[str, str]:
    """Return the text of each query by its name; its parts are named after it.

    Queries share no names, so each is the same as alone.
    """
    paths = sorted(LIBRARY.glob("*.gsql")) + sorted(LIBRARY.glob("published/*.gsql"))
    queries = {}
    for path in paths:
        name = path.stem
        in_folder = str(path.relative_to(LIBRARY).with_suffix(""))
        if name in LEFT_OUT or (in_folder in LEFT_OUT and in_folder != name) or name in queries:
            continue
        text = path.read_text()
        for part in _NAMED.findall(text):
            if part != name:
                text = re.sub(rf"\b{part}\b", f"{name}_{part}", text)
        queries[name] = text
    return queries
