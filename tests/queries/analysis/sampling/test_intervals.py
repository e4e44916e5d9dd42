"""Intervals of estimates against plain loops: the formula, and what it is on average.

Loops here know packets, flows and hosts, and none of the aggregates of which the product makes the
same numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import pytest
from tests.queries.analysis.sampling.simulated import Simulation, hosts, sums_by

from gscope.errors import UnsupportedError
from gscope.queries.catalog.scalar.hashes import xxh64
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Call
from gscope.queries.plan.sampling.moving_samples import moving_samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.queries.analysis.sampling.simulated import Values

Z = 1.959963984540054
RATE = 0.25
SEEDS = range(400)

PACKETS = """
SELECT tb, count(*) AS cnt, cnt_low, cnt_high, sum(len) AS bytes, bytes_low, bytes_high,
    sum(len) - 100 * count(*) AS over, over_low, over_high, avg(len) AS mean, mean_low, mean_high,
    8.0 * sum(len) / count(*) AS ratio, ratio_low, ratio_high, sample_groups
FROM TCP GROUP BY time/60 AS tb
"""
FLOWS = """
DEFINE {{ query_name 'flows'; }}
SELECT tb, srcIP, destIP, count(*) AS cnt, sum(len) AS bytes FROM TCP
GROUP BY time/60 AS tb, srcIP, destIP SAMPLE BY {};
DEFINE {{ query_name 'answer'; }}
SELECT tb, count(*) AS flows, flows_low, flows_high, sum(cnt) AS packets, packets_low, packets_high,
    sum(bytes) - 100 * sum(cnt) AS over, over_low, over_high,
    sum(bytes) / sum(cnt) AS ratio, ratio_low, ratio_high, sample_groups
FROM flows GROUP BY tb
"""


@dataclass(frozen=True)
class Scheme:
    """A way to sample.

    Attributes:
        text: the queries.
        unit: what a row is kept or dropped with; None if each row is kept on its own.
        bucket: the bucket of a row; None if the sum of squares is over rows.
        totals: for each estimated total, its value in a row.
        ratio: the numerator and denominator of ``ratio``.
    """

    text: str
    unit: Callable[[Values], Any] | None
    bucket: Callable[[Values], int] | None
    totals: dict[str, Callable[[Values], float]]
    ratio: tuple[Callable[[Values], float], Callable[[Values], float]]


def host_bucket(row: Values) -> int:
    return xxh64(row["srcIP"].to_bytes(16)) & 31


OF_FLOWS: dict[str, Callable[[Values], float]] = {
    "flows": lambda _: 1,
    "packets": lambda row: row["cnt"],
    "over": lambda row: row["bytes"] - 100 * row["cnt"],
}
BYTES_A_PACKET = (lambda row: row["bytes"], lambda row: row["cnt"])

SCHEMES = {
    "packets": Scheme(
        PACKETS,
        None,
        None,
        {"cnt": lambda _: 1, "bytes": lambda row: row["len"], "over": lambda row: row["len"] - 100},
        (lambda row: 8 * row["len"], lambda _: 1),
    ),
    "groups": Scheme(FLOWS.format("srcIP, destIP"), None, None, OF_FLOWS, BYTES_A_PACKET),
    "buckets": Scheme(
        FLOWS.format("srcIP"),
        lambda row: row["srcIP"],
        host_bucket,
        OF_FLOWS,
        BYTES_A_PACKET,
    ),
}


@cache
def simulated(name: str) -> Simulation:
    """The rows of a minute of traffic."""
    return Simulation.of(SCHEMES[name].text, hosts(7, 60), RATE, SCHEMES[name].unit)


def spread(scheme: Scheme, rows: list[Values], of: Callable[[Values], float]) -> float:
    """The sum of squares over the units of some rows, by a plain loop."""
    if scheme.bucket is None:
        return sum(of(row) ** 2 for row in rows)
    sums = [0.0] * 32
    for row in rows:
        sums[scheme.bucket(row)] += of(row)
    mean = sum(sums) / 32
    return 32 / 31 * sum((each - mean) ** 2 for each in sums)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("seed", range(8))
def test_intervals_are_those_of_a_plain_loop(name: str, seed: int) -> None:
    scheme = SCHEMES[name]
    simulation = simulated(name)
    places = simulation.kept(seed)
    rows = [simulation.rows[place] for place in places]
    row = simulation.answer(places, simulation.columns(RATE))
    for column, of in scheme.totals.items():
        total = sum(map(of, rows))
        half = Z * math.sqrt((1 - RATE) / RATE**2 * spread(scheme, rows, of))
        estimate = math.floor(total / RATE + 0.5)
        is_count = column in ("cnt", "flows")
        least = total if is_count or column == "bytes" else -math.inf
        assert row[column] == estimate
        assert row[f"{column}_low"] == max(math.floor(estimate - half), least)
        assert row[f"{column}_high"] == math.ceil(estimate + half)
    above, below = (sum(map(each, rows)) for each in scheme.ratio)
    residual = spread(
        scheme, rows, lambda r: scheme.ratio[0](r) - above / below * scheme.ratio[1](r)
    )
    half = Z * math.sqrt((1 - RATE) * residual) / below
    assert row["ratio"] == pytest.approx(above / below)
    assert row["ratio_low"] == pytest.approx(above / below - half)
    assert row["ratio_high"] == pytest.approx(above / below + half)


def test_an_average_is_the_ratio_of_a_sum_and_a_count() -> None:
    simulation = simulated("packets")
    row = simulation.answer(simulation.kept(3), simulation.columns(RATE))
    for end in ("", "_low", "_high"):
        assert 8 * row[f"mean{end}"] == pytest.approx(row[f"ratio{end}"])


@pytest.mark.parametrize("name", SCHEMES)
def test_the_number_of_groups_is_that_of_the_units_in_the_sample(name: str) -> None:
    simulation = simulated(name)
    for seed in range(8):
        places = simulation.kept(seed)
        row = simulation.answer(places, simulation.columns(RATE))
        assert row["sample_groups"] == len({simulation.units[place] for place in places})


def squared_margin(column: Any, simulation: Simulation, places: list[int]) -> float:
    """The square of the half width before it is rounded and bounded."""
    assert isinstance(column, Call)
    return float(simulation.answer(places, {"squared": column.arguments[1]})["squared"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "column"), [(name, column) for name, each in SCHEMES.items() for column in each.totals]
)
def test_estimates_and_variances_are_unbiased(name: str, column: str) -> None:
    """Over 400 seeds, within 4 standard errors of what a loop over all units gives."""
    scheme = SCHEMES[name]
    simulation = simulated(name)
    columns = simulation.columns(RATE)
    estimates, variances = [], []
    for seed in SEEDS:
        places = simulation.kept(seed)
        estimates.append(simulation.answer(places, {column: columns[column]})[column])
        squared = squared_margin(columns[f"{column}_high"], simulation, places)
        variances.append(squared / Z**2)
    of = scheme.totals[column]
    added: dict[Any, float] = {}
    for row, unit in zip(simulation.rows, simulation.units, strict=True):
        added[unit] = added.get(unit, 0.0) + of(row)
    true = sum(added.values())
    variance = (1 - RATE) / RATE * sum(each**2 for each in added.values())
    assert abs(fmean(estimates) - true) < 4 * math.sqrt(variance / len(SEEDS))
    if scheme.bucket is None:
        error = stdev(variances) / math.sqrt(len(SEEDS))
        assert abs(fmean(variances) - variance) < 4 * error
        assert error < variance / 25


@pytest.mark.slow
def test_variances_of_buckets_are_unbiased_over_addresses() -> None:
    """Buckets are those of addresses, so hosts get others after some seeds."""
    scheme = SCHEMES["buckets"]
    means = []
    for number in range(20):
        moved = [{**p, "srcIP": p["srcIP"] + number * 1_000_003} for p in hosts(7, 60)]
        simulation = Simulation.of(scheme.text, moved, RATE, scheme.unit)
        column = simulation.columns(RATE)["packets_high"]
        seeds = range(20 * number, 20 * number + 20)
        found = [squared_margin(column, simulation, simulation.kept(seed)) for seed in seeds]
        means.append(fmean(found) / Z**2)
    sums = sums_by(simulation.rows, simulation.units, "cnt")
    variance = (1 - RATE) / RATE * sum(each**2 for each in sums.values())
    error = stdev(means) / math.sqrt(len(means))
    assert abs(fmean(means) - variance) < 4 * error
    assert error < variance / 10


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMES)
def test_intervals_contain_the_full_answer_about_as_often_as_they_should(name: str) -> None:
    simulation = simulated(name)
    columns, whole = simulation.columns(RATE), simulation.whole
    names = [*SCHEMES[name].totals, "ratio"]
    hits = dict.fromkeys(names, 0)
    for seed in SEEDS:
        row = simulation.answer(simulation.kept(seed), columns)
        for each in names:
            hits[each] += row[f"{each}_low"] <= whole[each] <= row[f"{each}_high"]
    for each, count in hits.items():
        assert 0.88 < count / len(SEEDS) <= 0.99, each


@pytest.mark.parametrize("name", SCHEMES)
def test_at_the_rate_one_an_interval_is_the_value(name: str) -> None:
    whole = simulated(name).whole
    for column in [*SCHEMES[name].totals, "ratio"]:
        assert whole[f"{column}_low"] == whole[column] == whole[f"{column}_high"]


def bases(text: str) -> dict[str, str]:
    context = CompileContext(("main",), samples=True)
    plan = compile_queries([QueryText(text, "query")], context).stages[0][1]
    return {c.name: c.basis for query in plan.queries for c in query.sample_columns}


LOW = (
    "DEFINE { query_name 'low'; } SELECT tb, srcIP, destIP, count(*) AS cnt FROM TCP "
    "GROUP BY time/60 AS tb, srcIP, destIP {};"
)


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        ("", "SELECT tb, sum(cnt) AS n, n_low FROM low GROUP BY tb", "the groups of a row"),
        ("SAMPLE BY srcIP, destIP", "SELECT tb, srcIP & 255 AS b, sum(cnt) AS n, n_low FROM low "
         "GROUP BY tb, b", "the groups of a row"),
        ("", "SELECT t, sum(cnt) AS n, n_low FROM low GROUP BY tb/2 AS t",
         "32 buckets of groups by srcIP, destIP"),
        ("SAMPLE BY srcIP", "SELECT tb, sum(cnt) AS n, n_low FROM low GROUP BY tb",
         "32 buckets of groups by srcIP"),
        ("SAMPLE BY srcIP", "SELECT tb, destIP, sum(cnt) AS n, n_low FROM low GROUP BY tb, destIP",
         "the groups of a row"),
        ("SAMPLE BY prefix(srcIP, 24)", "SELECT tb, destIP, sum(cnt) AS n, n_low FROM low "
         "GROUP BY tb, destIP", "32 buckets of groups by prefix(srcIP, 24, 128)"),
    ],
)  # fmt: skip
def test_rows_are_units_where_a_group_has_one_of_each(
    below: str, above: str, expected: str
) -> None:
    assert bases(f"{LOW.replace('{}', below)} {above}") == {"n_low": expected}


def test_another_reader_of_the_same_groups_changes_what_an_interval_rests_on() -> None:
    low = LOW.replace("{}", "")
    other = "DEFINE { query_name 'most'; } SELECT tb, srcIP, max(cnt) FROM low GROUP BY tb, srcIP;"
    text = "SELECT tb, sum(cnt) AS n, n_low, sample_groups FROM low GROUP BY tb"
    assert set(bases(f"{low} {text}").values()) == {"the groups of a row"}
    assert set(bases(f"{low} {other} {text}").values()) == {"32 buckets of groups by srcIP"}


def test_packets_that_are_sampled_by_groups_are_counted_in_buckets() -> None:
    """A total beside flows of the same packets takes their terms."""
    text = """
    DEFINE { query_name 'flows'; } SELECT tb, srcIP, count(*) AS cnt FROM TCP
        GROUP BY time/60 AS tb, srcIP;
    DEFINE { query_name 'totals'; } SELECT tb, count(*) AS n, n_low FROM TCP GROUP BY time/60 AS tb;
    SELECT F.tb, F.srcIP, F.cnt, T.n, T.n_low FROM flows F, totals T WHERE F.tb = T.tb
    """
    assert bases(text) == {"n_low": "32 buckets of groups by srcIP"}


def test_results_that_sample_one_query_differently_are_refused() -> None:
    """One result keeps sources, the other destinations, and both read the same total."""
    queries = [
        LOW.replace("{}", ""),
        "DEFINE { query_name 'total'; } SELECT tb, sum(cnt) AS n, n_low FROM low GROUP BY tb;",
    ]
    for name, key in (("sources", "srcIP"), ("targets", "destIP")):
        queries += [
            f"DEFINE {{ query_name '{name}'; }} SELECT tb, {key}, max(cnt) AS most FROM low "
            f"GROUP BY tb, {key};",
            f"DEFINE {{ query_name 'share_of_{name}'; }} "
            f"SELECT S.tb, S.{key}, S.most, T.n, T.n_low "
            f"FROM {name} S, total T WHERE S.tb = T.tb;",
        ]
    with pytest.raises(UnsupportedError, match="results that read total sample it in different"):
        bases("".join(queries))
    assert bases("".join(queries[:4])) == {"n_low": "32 buckets of groups by srcIP"}


def test_intervals_of_single_packets_follow_the_load() -> None:
    context = CompileContext(("main",), samples=True, follows_load=True)
    program = compile_queries([QueryText(PACKETS, "query")], context).program
    ((sample,), reasons) = moving_samples(program)
    assert sample.weighted
    assert not reasons
