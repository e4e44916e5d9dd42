"""How often the interval of an estimate contains the value: simulated samples of known answers.

    python -m benchmarks.sampling.coverage [--seeds 2000]

Each population is a window of packets or flows. For each seed of a run, the hash of the product
chooses the packets or groups, the aggregates of the compiled query are summed over them, and the
columns of its program give the estimate and its interval. No packet is captured. Shown for each
estimate and rate:

    bias      (mean estimate - value) in standard errors of that mean
    variance  mean estimated variance / true variance: (1 - p)/p times the sum of the squares of
              what packets or groups add; of ratios, the variance of the estimates over all seeds
    coverage  share of the seeds whose 95% interval contains the value

Writes ``benchmarks/sampling/coverage.csv``.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.sampling.plots import Panel, plot_panels
from benchmarks.trace import OUT
from gscope.engine.running.vectors import compute, dtype_of, never_null
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Call, Column, walk
from gscope.queries.plan.logical import GroupBy
from gscope.queries.plan.program import AggregationNode
from gscope.queries.plan.program_sampling import SamplingMethod
from gscope.queries.plan.sampling.keyed_hash import HashKey, address_words, hash_words, threshold_of
from gscope.queries.plan.sampling.scaling import with_rate
from gscope.queries.plan.trees import map_expression, nodes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import AggregateCall
    from gscope.queries.plan.program import Program

    Array = NDArray[Any]

CSV = Path(__file__).with_name("coverage.csv")
RATES = (0.01, 0.1, 0.5)
UNITS = 20_000
TAILS = (2.0, 1.5, 1.2)
"""The share of flows with more than x packets falls as x to the power of minus this."""

LARGEST = 50_000
"""The most packets of a flow."""

LABELLINGS = 20
"""How often groups get other addresses, and so other buckets, while seeds change."""

_V4 = 0xFFFF << 32
_Z = 1.959963984540054

PACKETS = """
SELECT tb, count(*) AS cnt, cnt_low, cnt_high, sum(len) AS bytes, bytes_low, bytes_high,
    avg(len) AS mean, mean_low, mean_high
FROM IP GROUP BY time/60 AS tb
"""
FLOWS = """
DEFINE {{ query_name 'flows'; }}
SELECT tb, srcIP, destIP, count(*) AS cnt, sum(len) AS bytes FROM IP
GROUP BY time/60 AS tb, srcIP, destIP SAMPLE BY {terms};

DEFINE {{ query_name 'answer'; }}
SELECT tb, count(*) AS flows, flows_low, flows_high, sum(cnt) AS packets, packets_low, packets_high,
    sum(bytes) / sum(cnt) AS mean, mean_low, mean_high
FROM flows GROUP BY tb
"""


@dataclass(frozen=True)
class Population:
    """The rows that a grouping reads.

    Attributes:
        name: its name in the table.
        text: the query.
        rows: the columns of the rows; of IP addresses the lower 32 bits.
        unit: the column whose hash decides which rows are kept; "" for the number of the row.
    """

    name: str
    text: str
    rows: dict[str, Array]
    unit: str = ""


def populations() -> list[Population]:
    """Return windows of packets and of flows, by how heavy the tail of their sizes is."""
    random = np.random.default_rng(5)
    lengths = np.where(random.random(UNITS) < 0.4, 1500, random.integers(60, 200, UNITS))
    flows, per_host = np.arange(UNITS), 1 + random.poisson(3, UNITS // 4)
    hosts = np.repeat(np.arange(len(per_host)), per_host)
    found = [Population("packets", PACKETS, {"len": lengths})]
    for what, terms, sources in (
        ("flows", "srcIP, destIP", flows),
        ("hosts in buckets", "srcIP", hosts),
    ):
        text = FLOWS.format(terms=terms)
        even = 1 + random.poisson(9, len(sources))
        found.append(Population(f"{what}, even", text, _flows(sources, even, random), "srcIP"))
        for tail in TAILS:
            sizes = (1 - random.random(len(sources))) ** (-1 / tail)
            rows = _flows(sources, np.floor(sizes).clip(max=LARGEST), random)
            found.append(Population(f"{what}, Pareto {tail}", text, rows, "srcIP"))
    return found


def _flows(sources: Array, counts: Array, random: np.random.Generator) -> dict[str, Array]:
    size = random.integers(60, 1500, len(counts))
    counts = counts.astype(np.int64)
    return {"srcIP": sources, "destIP": sources, "cnt": counts, "bytes": counts * size}


@dataclass(frozen=True)
class Compiled:
    """A compiled population.

    Attributes:
        program: its program.
        calls: the aggregates of the grouping, hidden ones among them.
    """

    program: Program
    calls: tuple[AggregateCall, ...]

    @classmethod
    def of(cls, population: Population) -> Compiled:
        """Compile a population."""
        context = CompileContext(("main",), samples=True)
        compiled = compile_queries([QueryText(population.text, population.name)], context)
        root = compiled.stages[0][1].queries[-1].root
        group = next(node for node in nodes_of(root) if isinstance(node, GroupBy))
        return cls(compiled.program, group.aggregates)

    def columns(self, rate: float) -> dict[str, Expression]:
        """Return the columns of the answer at a rate."""
        node = with_rate(self.program, rate).nodes[-1]
        assert isinstance(node, AggregationNode)
        return {column.name: column.expression for column in node.columns}

    @property
    def method(self) -> SamplingMethod:
        """How packets are sampled."""
        (sampling,) = {lfta.sampling for lfta in self.program.lftas}
        assert sampling is not None
        return sampling.method

    def values(self, rows: dict[str, Array]) -> Array:
        """Return what each row adds to each aggregate; of averages, to the sum."""
        known = _with_hashes(self.calls, rows)
        return np.column_stack([_added(call, known) for call in self.calls])

    def aggregates(self, kept: Array, values: Array) -> dict[str, Array]:
        """Return the aggregates of samples, given which rows each keeps."""
        sums = kept.astype(np.float64) @ values
        return {
            call.name: sums[:, n] / kept.sum(axis=1)
            if call.function == "avg"
            else sums[:, n].astype(dtype_of(call.type))
            for n, call in enumerate(self.calls)
        }


def _with_hashes(calls: tuple[AggregateCall, ...], rows: dict[str, Array]) -> dict[str, Array]:
    """Return the rows with the hashes that buckets are made of, each computed once."""
    known = dict(rows)
    hash_ip = FUNCTIONS["hash_ip"].evaluate
    for part in (p for call in calls for a in call.arguments for p in walk(a)):
        if isinstance(part, Call) and part.function == "hash_ip" and repr(part) not in known:
            (column,) = part.arguments
            assert isinstance(column, Column)
            distinct, places = np.unique(rows[column.name], return_inverse=True)
            hashes = [hash_ip(_V4 | int(address)) for address in distinct]
            known[repr(part)] = np.array(hashes, np.int64)[places]
    return known


def _added(call: AggregateCall, rows: dict[str, Array]) -> Array:
    """Return what each row adds to a count or sum."""
    size = len(next(iter(rows.values())))
    if not call.arguments:
        return np.ones(size)

    def known(part: Expression) -> Expression:
        name = repr(part)
        return Column(name, part.type, part.is_nullable) if name in rows else part

    argument = map_expression(call.arguments[0], known)
    found = compute(argument, lambda name: never_null(rows[name]), size)
    if call.function == "count":
        return found.valid.astype(np.float64)
    return np.where(found.valid, found.values, 0).astype(np.float64)


def samples(words: Array, method: SamplingMethod, rate: float, seeds: range) -> Array:
    """Return which rows the sample of each seed keeps.

    Args:
        words: the address or the number of each row.
        method: how packets are sampled.
        rate: the rate.
        seeds: the seeds.
    """
    high = np.zeros(len(words), np.uint64)
    kept = []
    for seed in seeds:
        key = HashKey.of_seed(seed)
        if method is SamplingMethod.TUPLES:
            found = hash_words([words], replace(key, start=key.of_interface("main")))
        else:
            found = hash_words([address_words(high, words | np.uint64(_V4), key)], key)
        kept.append(found <= np.uint64(threshold_of(rate)))
    return np.array(kept)


def relabelled(population: Population, seed: int) -> tuple[dict[str, Array], Array]:
    """Return the rows with other addresses, and the word that is hashed of each."""
    size = len(next(iter(population.rows.values())))
    if not population.unit:
        return population.rows, np.arange(size, dtype=np.uint64)
    random = np.random.default_rng(seed)
    addresses = random.choice(1 << 32, population.rows[population.unit].max() + 1, replace=False)
    found = addresses[population.rows[population.unit]]
    return {**population.rows, population.unit: found}, found.astype(np.uint64)


def measured(population: Population, rate: float, seeds: int) -> list[dict[str, Any]]:
    """Return a row of the table for each estimate of a population."""
    compiled = Compiled.of(population)
    parts = []
    each = seeds // LABELLINGS
    for number in range(LABELLINGS):
        rows, words = relabelled(population, number)
        kept = samples(words, compiled.method, rate, range(number * each, (number + 1) * each))
        parts.append(compiled.aggregates(kept, compiled.values(rows)))
    sums = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    count = each * LABELLINGS
    columns = compiled.columns(rate)
    estimated = [name for name in columns if f"{name}_low" in columns]
    truths, variances = _true(compiled, population, rate)
    found = []
    for name in estimated:
        end = columns[f"{name}_high"]
        assert isinstance(end, Call)
        estimates = _column(columns[name], sums, count).astype(np.float64)
        squared = _column(end.arguments[1], sums, count) / _Z**2
        low, high = (_column(columns[f"{name}_{side}"], sums, count) for side in ("low", "high"))
        spread = estimates.std(ddof=1)
        true = variances.get(name, spread**2)
        covered = (low <= truths[name]) & (truths[name] <= high)
        found.append(
            {
                "population": population.name,
                "estimate": name,
                "rate": rate,
                "seeds": count,
                "bias": round((estimates.mean() - truths[name]) / (spread / np.sqrt(count)), 2),
                "variance": round(squared.mean() / true, 3),
                "coverage": round(float(covered.mean()), 4),
            }
        )
    return found


def _column(expression: Expression, of: dict[str, Array], rows: int) -> Array:
    return compute(expression, lambda name: never_null(of[name]), rows).values


def _true(
    compiled: Compiled, population: Population, rate: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the values of the full answer, and the variances of the estimates of totals.

    The sums of squares are those of a plain loop over packets or groups.
    """
    rows = population.rows
    whole = np.ones((1, len(next(iter(rows.values())))), np.bool_)
    of = compiled.aggregates(whole, compiled.values(rows))
    columns = compiled.columns(1.0)
    truths = {n: float(_column(e, of, 1)[0]) for n, e in columns.items() if f"{n}_low" in columns}
    units = rows[population.unit] if population.unit else np.arange(whole.shape[1])
    added = {
        "cnt": np.ones(whole.shape[1]),
        "flows": np.ones(whole.shape[1]),
        "bytes": rows.get("len"),
        "packets": rows.get("cnt"),
    }
    variances = {
        name: (1 - rate) / rate * float((np.bincount(units, added[name]) ** 2).sum())
        for name in truths
        if name in added
    }
    return truths, variances


def plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Plot the share of intervals that contain the full answer, by rate."""
    curves: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(dict)
    for row in rows:
        kind, _, tail = str(row["population"]).partition(", ")
        # The number of flows does not depend on their sizes.
        if row["estimate"] == "flows" and tail != "even":
            continue
        name = f"{row['estimate']}, {tail}" if tail else str(row["estimate"])
        curves[kind].setdefault(name, []).append((float(row["rate"]), float(row["coverage"])))
    label = "share of intervals that contain the full answer"
    lines = {"nominal: 95%": 0.95}
    panels = [
        Panel(f"95% intervals: samples of {kind}", label, each, lines=lines, least=0.35)
        for kind, each in curves.items()
    ]
    plot_panels(panels, path, has_log_rates=True)


def main() -> None:
    """Simulate all populations and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2000, help="samples of each population")
    arguments = parser.parse_args()
    rows = []
    for population in populations():
        for rate in RATES:
            for row in measured(population, rate, arguments.seeds):
                rows.append(row)
                print(*row.values(), sep="\t", flush=True)
    with CSV.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    if importlib.util.find_spec("matplotlib") is not None:
        OUT.mkdir(exist_ok=True)
        plot(rows, OUT / "coverage.png")


if __name__ == "__main__":
    main()
