"""How many tuples a second a core samples, for each sampler, in Python and compiled.

    python -m benchmarks.sampling_operator [--rows 1000000] [--few 50000]

Tuples of 20 seconds of random packets of 1,000 hosts are folded in one step: numbering of groups,
order, kernel, answers; without packets, files and Spark. CPU seconds are those of the process; the
least of three runs counts. The first compiled run shows what compiling costs.
"""

from __future__ import annotations

import argparse
import time
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from gscope.engine.sampling import kernels
from gscope.engine.sampling.fold import fold
from gscope.engine.sampling.tuples import read_columns
from gscope.engine.sampling.values import SampleRows
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling_operator import SampleNode

QUERIES = {
    "threshold, 1 supergroup": """
        SELECT uts, srcIP, destIP, UMAX(sum(len), ssthreshold()) FROM PKTS WHERE ssample(len,1000)=TRUE
        GROUP BY time/20 as tb, srcIP, destIP, uts HAVING ssfinal_clean(sum(len))=TRUE
        CLEANING WHEN ssdo_clean()=TRUE CLEANING BY ssclean_with(sum(len))=TRUE""",  # noqa: E501
    "threshold, 1,000 supergroups": """
        SELECT uts, srcIP, destIP, UMAX(sum(len), ssthreshold()) FROM PKTS WHERE ssample(len,10)=TRUE
        GROUP BY time/20 as tb, srcIP, destIP, uts SUPERGROUP srcIP HAVING ssfinal_clean(sum(len))=TRUE
        CLEANING WHEN ssdo_clean()=TRUE CLEANING BY ssclean_with(sum(len))=TRUE""",  # noqa: E501
    "heavy hitters": """
        SELECT tb, srcIP, sum(len), count(*) FROM IP GROUP BY time/20 AS tb, srcIP
        CLEANING_WHEN local_count(100)
        CLEANING_BY count(*) >= current_bucket() - first(current_bucket())""",
    "k minimum values": """
        SELECT tb, srcIP, HX FROM IP WHERE HX <= Kth_smallest_value$(HX, 100)
        GROUP BY time/20 AS tb, srcIP, H(destIP) AS HX SUPERGROUP srcIP
        HAVING HX <= Kth_smallest_value$(HX, 100)
        CLEANING_WHEN count_distinct$(*) >= 200 CLEANING_BY HX <= Kth_smallest_value$(HX, 100)""",
    "reservoir": """
        SELECT tb, srcIP, uts FROM IP WHERE rsample(1000) GROUP BY time/20 AS tb, srcIP, uts
        HAVING rsfinal_clean() CLEANING_WHEN rsdo_clean() CLEANING_BY rsclean_with()""",
}


def node_of(text: str) -> SampleNode:
    """Return the operator of a query."""
    (node,) = compile_queries([QueryText(text, "q")], CompileContext(("a",))).program.nodes
    assert isinstance(node, SampleNode)
    return node


def tuples(node: SampleNode, count: int) -> pa.Table:
    """Return the columns that the LFTA of ``node`` would ship of random packets."""
    chance = np.random.default_rng(1)
    times = np.sort(chance.integers(0, 20 * 10**9, count))
    columns: dict[str, Any] = {}
    for column in read_columns(node):
        if column.type is GsqlType.IP:
            hosts = [(0xFFFF << 32 | number).to_bytes(16) for number in range(1000)]
            chosen = pa.array(chance.zipf(1.3, count) % 1000)
            columns[column.name] = pa.array(hosts, pa.binary()).take(chosen)
        elif column.name in ("time_ns", "uts"):
            columns[column.name] = times
        elif column.name == "tb":
            columns[column.name] = np.zeros(count, np.int64)
        elif column.name == "HX":
            columns[column.name] = chance.integers(-(1 << 63), (1 << 63) - 1, count) & ~0xFFFFF
        else:
            columns[column.name] = chance.choice([40, 60, 576, 1500], count)
    return pa.table(columns)


def measured(node: SampleNode, table: pa.Table) -> float:
    """Return the CPU seconds of one fold."""
    rows = SampleRows.of(node, table)
    began = time.process_time()
    fold(node, rows, None, lambda _: None)
    return time.process_time() - began


def main() -> None:
    """Print a line for each sampler."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=50_000)
    given = parser.parse_args()
    print("| sampler | Python, tuples/s | compiled, tuples/s | compiling, s |\n|---|---|---|---|")
    for name, text in QUERIES.items():
        node = node_of(text)
        few, many = tuples(node, given.few), tuples(node, given.rows)
        with mock.patch.object(kernels, "COMPILED_ROWS", 1 << 62):
            plain = given.few / min(measured(node, few) for _ in range(3))
        with mock.patch.object(kernels, "COMPILED_ROWS", 0):
            first = measured(node, many)
            least = min(measured(node, many) for _ in range(3))
        print(
            f"| {name} | {plain:,.0f} | {given.rows / least:,.0f} | {first - least:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
