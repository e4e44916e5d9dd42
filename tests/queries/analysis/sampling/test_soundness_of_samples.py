"""Samples against plain loops over random packets: whole nodes are exact, estimates unbiased."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from tests.queries.analysis.sampling.plain_answers import PlainAnswers, Row, counted
from tests.queries.analysis.sampling.samples import Sampled
from tests.support.long_form import cases

from gscope.queries.analysis.sampling.standings import Rows
from gscope.queries.plan.logical import GroupBy, Join, RunningGroupBy, WindowGroupBy
from gscope.queries.plan.program_sampling import Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from tests.queries.analysis.sampling.plain_answers import Packet

    from gscope.queries.analysis.sampling.query_sets import PlacedTree
    from gscope.queries.analysis.sampling.standings import Outcome

    Keeps: TypeAlias = Callable[[int, Packet], bool]
    Maker: TypeAlias = Callable[[int], tuple[Sampled, list[Packet]]]

_MOST_UNITS = 9


MAKERS = (Sampled.at_random, Sampled.over_time)


def sampled_nodes(
    make: Maker, seed: int, rate: float
) -> Iterator[tuple[Outcome, tuple[str, list[Row]], list[Row], Callable[[tuple[int, int]], bool]]]:
    """Yield for each query its outcome, its rows in full and of a sample.

    Also yield which packets it keeps.
    """
    sampled, traffic = make(seed)
    for tree in sampled.trees:
        assert tree.tree is not None
        keeps = sampled.keeps(
            tree, traffic, lambda unit: random.Random(repr((seed, unit))).random() < rate
        )
        full, sample = plain(sampled, traffic), plain(sampled, traffic, keeps)
        full.answer(tree.result)
        sample.answer(tree.result)
        judge = sampled.found.judge(tree)
        roots = [node for node in tree.tree.walk() if node.is_root]

        def is_kept(at: tuple[int, int], keeps: Keeps = keeps) -> bool:
            leaf, number = at
            return keeps(leaf, traffic[number])

        for node, named, (_, found) in zip(roots, full.rows, sample.rows, strict=True):
            yield judge.outcomes[node], named, found, is_kept


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", cases(range(60), range(60, 2000)))
def test_whole_nodes_have_the_rows_of_the_full_answer(make: Maker, seed: int) -> None:
    """All packets of a row are kept, or none; the sampled answer is the rows that are kept."""
    for outcome, (name, rows), found, keeps in sampled_nodes(make, seed, 0.5):
        if not outcome.is_whole:
            continue
        exact = [c for c, s in outcome.columns.items() if s is Standing.WHOLE]
        fates = [set(map(keeps, row.packets)) for row in rows]
        assert all(len(fate) == 1 for fate in fates), name
        expected = [row for row, fate in zip(rows, fates, strict=True) if fate == {True}]
        assert counted(_only(expected, exact)) == counted(_only(found, exact)), name


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", cases(range(60), range(60, 2000)))
def test_whole_columns_have_values_of_the_full_answer(make: Maker, seed: int) -> None:
    """Also of estimates: together they are those of a row of the full answer."""
    for outcome, (name, rows), found, _ in sampled_nodes(make, seed, 0.2):
        exact = [c for c, standing in outcome.columns.items() if standing is Standing.WHOLE]
        assert set(counted(_only(found, exact))) <= set(counted(_only(rows, exact))), name


def _only(rows: list[Row], columns: list[str]) -> list[Row]:
    return [Row({c: row.values[c] for c in columns}, row.packets) for row in rows]


def plain(
    sampled: Sampled,
    traffic: list[Packet],
    keeps: Callable[[int, Packet], bool] = lambda _leaf, _packet: True,
) -> PlainAnswers:
    """Return the answers in plain loops; the clock is that of all packets, whatever is kept."""
    last = max(packet["time"] for packet in traffic) // 60
    return PlainAnswers(sampled.compiled.stages[0][1], traffic, keeps, last_epoch=last)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", cases(range(25), range(25, 400)))
def test_scaled_columns_are_unbiased(make: Maker, seed: int) -> None:
    """The mean over all samples with rate 1/2, each as likely, is the full answer."""
    sampled, traffic = make(seed)
    del traffic[_MOST_UNITS:]
    for tree in sampled.trees:
        assert tree.tree is not None
        units = _units(sampled, tree, traffic)
        if len(units) <= _MOST_UNITS:
            _check_means(sampled, tree, traffic, units)


def _units(sampled: Sampled, tree: PlacedTree, traffic: list[Packet]) -> list[Any]:
    found = {
        sampled.unit(tree, leaf, packet, number)
        for leaf in range(len(tree.streams))
        for number, packet in enumerate(traffic)
    }
    return sorted(found, key=repr)


def _check_means(
    sampled: Sampled, tree: PlacedTree, traffic: list[Packet], units: list[Any]
) -> None:
    assert tree.tree is not None
    judge = sampled.found.judge(tree)
    walked = list(tree.tree.walk())
    groupings = (n for n in walked if isinstance(n.node, GroupBy | RunningGroupBy | WindowGroupBy))
    scaled = [judge.outcomes[n].scaled for n in groupings]
    roots = [node for node in walked if node.is_root]
    # A join of totals loses its row where one of them has no packet in the sample.
    checked = {
        place: [c for c, s in judge.outcomes[node].columns.items() if s is Standing.SCALED]
        for place, node in enumerate(roots)
        if judge.outcomes[node].rows in (Rows.TOTALS, Rows.ESTIMATES)
        and not any(
            isinstance(n.node, Join) and not judge.outcomes[n].is_whole for n in node.walk()
        )
    }
    full = plain(sampled, traffic)
    full.answer(tree.result)
    sums: dict[tuple[int, Any], list[Any]] = {}
    for fates in product((False, True), repeat=len(units)):
        kept = {unit for unit, fate in zip(units, fates, strict=True) if fate}
        sample = plain(sampled, traffic, sampled.keeps(tree, traffic, kept.__contains__))
        sample.scaled, sample.factor = scaled, 2
        sample.answer(tree.result)
        for place, columns in checked.items():
            for row in sample.rows[place][1]:
                total = sums.setdefault(_group(place, row, columns), [0] * len(columns))
                for number, column in enumerate(columns):
                    total[number] += row.values[column] or 0
    for place, columns in checked.items():
        for group, rows in _by_group(place, full.rows[place][1], columns).items():
            expected = [sum(row.values[column] or 0 for row in rows) for column in columns]
            means = [total / 2 ** len(units) for total in sums.get(group, [0] * len(columns))]
            assert means == pytest.approx(expected), (roots[place].query.name, group)


def _group(place: int, row: Row, columns: list[str]) -> tuple[int, Any]:
    return place, row.values["tb"]


def _by_group(place: int, rows: list[Row], columns: list[str]) -> dict[tuple[int, Any], list[Row]]:
    found: dict[tuple[int, Any], list[Row]] = {}
    for row in rows:
        found.setdefault(_group(place, row, columns), []).append(row)
    return found
