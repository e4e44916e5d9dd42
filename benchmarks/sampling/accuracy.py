"""D1 to D3: what samples of ten rates answer, beside the full answers, by the way of sampling.

    python -m benchmarks.sampling.accuracy [--seeds 5] [--per-minute 200000]

The published queries, over the trace of ``connections.py``: ``syn_ack_delay`` (D1), ``dup_ratio``
(D2), ``matched_syn_ratio`` with the two queries that it reads (D3). Three schemes:

- groups: what gscope chooses, addresses and ports;
- hosts: a smaller set of the same terms, the two addresses: fewer and larger groups;
- tuples: single packets. gscope refuses these for all three queries (``sampling 'tuples'`` is an
  error), so the compiled program is changed here.

For each scheme, rate and seed, ``benchmarks/out/sampled_answers.csv`` has the pairs that the join
finds (D1), and the ratio of each minute (D2, D3), beside those of the full answer. An alarm is
raised in a minute in which less than six in ten SYNs are answered. Each row of a sampled join must
be a row of the full answer, and the full answers must agree with counts in numpy over the generated
packets.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tests.golden.driver import Variation, answer
from tests.support.shared_spark import SharedSpark

from benchmarks.records import write_records
from benchmarks.sampling.connections import (
    ACK,
    FLOODED,
    PER_MINUTE,
    SYN,
    capture,
    connections,
)
from benchmarks.sampling.plots import Panel, plot_panels
from benchmarks.trace import OUT
from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.library.files import library_files
from gscope.queries.plan.program_sampling import LeafSampling, SamplingMethod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.golden.driver import Row

    from gscope.queries.plan.program import Lfta, Program

RATES = (0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2)
SCHEMES = ("groups", "hosts", "tuples")
SEEDS = 5
ALARM_BELOW = 0.6
_RATIOS = {"dup_ratio": "D2", "matched_syn_ratio": "D3"}
_Answers = dict[str, list["Row"]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one run.

    Attributes:
        experiment: D1, D2 or D3.
        minute: the number of the minute; -1 for a figure of the whole trace.
        sampled: D1: the pairs of the sample; D2, D3: the ratio of the sample.
        full: the same of the full answer.
    """

    experiment: str
    scheme: str
    rate: float
    seed: int
    minute: int
    sampled: float
    full: float

    @property
    def error(self) -> float:
        """How far the sample is off, as a share of the full answer."""
        return abs(self.sampled - self.full) / self.full

    @property
    def is_alarm(self) -> bool:
        """Whether the ratio of the sample raises an alarm."""
        return self.sampled < ALARM_BELOW


def programs() -> dict[str, Program]:
    """Return the program without sampling, as "full", and that of each scheme."""
    names = ("dup_ratio", "matched_syn_ratio", "syn_ack_delay")
    ratio, matched, delay = (
        library_files()[f"published/{name}"].read_text("utf-8") for name in names
    )
    # Both files about SYNs begin with the same selections.
    last = delay.index("DEFINE { query_name 'syn_ack_delay'")
    shared = f"{matched};\n{delay[last:]}"
    texts = [QueryText(ratio, "dup_ratio.gsql"), QueryText(shared, "syns.gsql")]
    made = {
        is_sampled: compile_queries(
            texts, CompileContext(("main",), only=names, samples=is_sampled)
        ).program
        for is_sampled in (False, True)
    }
    full, groups = made[False], made[True]
    assert all(lfta.sampling is not None for lfta in groups.lftas)
    return {
        "full": full,
        "groups": groups,
        "hosts": replace(groups, lftas=tuple(map(_by_hosts, groups.lftas))),
        "tuples": replace(full, lftas=tuple(map(_by_tuples, full.lftas))),
    }


def _by_hosts(lfta: Lfta) -> Lfta:
    """Return an LFTA that hashes the addresses among its terms."""
    assert lfta.sampling is not None
    addresses = tuple(term for term in lfta.sampling.terms if term.type is GsqlType.IP)
    assert len(addresses) == 2
    return replace(lfta, sampling=LeafSampling(SamplingMethod.GROUPS, addresses))


def _by_tuples(lfta: Lfta) -> Lfta:
    return replace(lfta, sampling=LeafSampling(SamplingMethod.TUPLES, ()))


def figures(
    ask: Callable[[Program, SheddingSettings | None], _Answers], seeds: int
) -> Iterator[Figure]:
    """Yield the figures of all runs; ``ask`` answers a program over the trace."""
    made = programs()
    full = ask(made["full"], None)
    pairs = Counter(full["syn_ack_delay"])
    for seed in range(1, seeds + 1):
        for rate in RATES:
            shedding = SheddingSettings(SheddingMode.FIXED, rate, seed)
            for scheme in SCHEMES:
                sampled = ask(made[scheme], shedding)
                found = Counter(sampled["syn_ack_delay"])
                assert found <= pairs, (scheme, rate, seed)
                run = (scheme, rate, seed)
                yield Figure("D1", *run, -1, found.total(), pairs.total())
                for query, experiment in _RATIOS.items():
                    ratios = _by_minute(sampled[query])
                    for minute, (time, ratio) in enumerate(_by_minute(full[query]).items()):
                        yield Figure(experiment, *run, minute, ratios.get(time, 0.0), ratio)
            print(f"seed {seed}, rate {rate}", flush=True)


def _by_minute(rows: Sequence[Row]) -> dict[str, float]:
    """Return the ratio of each minute; without a match, the outer join has NULL."""
    return {time: float(ratio) if ratio else 0.0 for time, ratio in sorted(rows)}


def check(full: _Answers, per_minute: int) -> None:
    """Check the full answers against counts in numpy that use nothing of gscope."""
    packets = connections(per_minute)
    minutes = np.round(packets.at * 1e9).astype(np.int64) // (60 * 10**9)
    flows = (packets.source, packets.target, packets.source_port, packets.target_port)
    columns = np.stack([minutes, *flows, packets.sequence], axis=1)
    syns = columns[packets.flags == SYN]
    way_back = (packets.target, packets.source, packets.target_port, packets.source_port)
    answers = np.stack([minutes, *way_back, (packets.acknowledged - 1) % (1 << 32)], axis=1)
    answered = set(map(tuple, answers[packets.flags == SYN | ACK].tolist()))
    is_matched = np.array([tuple(row) in answered for row in syns.tolist()])
    assert len(full["syn_ack_delay"]) == is_matched.sum()
    ratios = (_by_minute(full[query]).values() for query in _RATIOS)
    for minute, (resent, matched) in enumerate(zip(*ratios, strict=True)):
        own = columns[minutes == minute]
        assert np.isclose(resent, 1 - len(np.unique(own, axis=0)) / len(own)), minute
        assert np.isclose(matched, is_matched[syns[:, 0] == minute].mean()), minute


def table(rows: Sequence[Figure]) -> Iterator[str]:
    """Yield the lines of a Markdown table of means over seeds and minutes."""
    yield (
        "| rate | "
        + " | ".join(
            f"{experiment} {scheme}" for experiment in ("D1", "D2", "D3") for scheme in SCHEMES
        )
        + " |"
    )
    yield "| ---: |" + " ---: |" * (3 * len(SCHEMES))
    for rate in RATES:
        cells = []
        for experiment in ("D1", "D2", "D3"):
            for scheme in SCHEMES:
                own = _of(rows, experiment, scheme, rate)
                shares = [f.sampled / f.full for f in own]
                errors = [100 * (1 - f.error) for f in own]
                cells.append(
                    f"{statistics.mean(shares):.4f}"
                    if experiment == "D1"
                    else f"{statistics.mean(errors):.1f} ({min(errors):.1f})"
                )
        yield f"| {rate} | {' | '.join(cells)} |"


def alarms(rows: Sequence[Figure]) -> Iterator[str]:
    """Yield for each scheme how many minutes raised an alarm, with and without the flood."""
    for scheme in SCHEMES:
        own = [f for f in rows if f.experiment == "D3" and f.scheme == scheme]
        flooded = [f for f in own if f.minute == FLOODED]
        quiet = [f for f in own if f.minute != FLOODED]
        false, right = (sum(f.is_alarm for f in each) for each in (quiet, flooded))
        yield (
            f"{scheme}: {false} alarms in {len(quiet)} quiet minutes,"
            f" {right} in {len(flooded)} flooded"
        )


def _of(rows: Sequence[Figure], experiment: str, scheme: str, rate: float) -> list[Figure]:
    wanted = (experiment, scheme, rate)
    return [f for f in rows if (f.experiment, f.scheme, f.rate) == wanted]


def plot(rows: Sequence[Figure], path: Path) -> None:
    """Plot the share of pairs, and the mean accuracy of the ratios, by rate."""

    def curves(
        experiment: str, value: Callable[[Figure], float]
    ) -> dict[str, list[tuple[float, float]]]:
        return {
            scheme: [
                (rate, statistics.mean(value(f) for f in _of(rows, experiment, scheme, rate)))
                for rate in RATES
            ]
            for scheme in SCHEMES
        }

    published = {
        "published, by groups: R": [(rate, rate) for rate in RATES],
        "published, by tuples: R²": [(rate, rate**2) for rate in RATES],
    }
    ours = "published, by groups"
    panels = (
        Panel(
            "D1: pairs that the join finds",
            "share of the pairs of the full answer",
            curves("D1", lambda f: f.sampled / f.full),
            published,
        ),
        Panel(
            "D2: ratio of retransmissions",
            "accuracy: 100% less the relative error",
            curves("D2", lambda f: 1 - f.error),
            band=(0.91, 0.98, ours),
        ),
        Panel(
            "D3: ratio of answered SYNs",
            "accuracy: 100% less the relative error",
            curves("D3", lambda f: 1 - f.error),
            band=(0.91, 0.99, ours),
        ),
    )
    plot_panels(panels, path)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--per-minute", type=int, default=PER_MINUTE)
    given = parser.parse_args()
    trace = capture(given.per_minute)
    with tempfile.TemporaryDirectory(prefix="gscope-sampling-") as folder:
        shared = SharedSpark(Path(folder))

        def ask(program: Program, shedding: SheddingSettings | None) -> _Answers:
            variation = Variation("accuracy", shedding=shedding)
            return answer(program, {"main": [trace]}, variation, shared.session())

        try:
            check(ask(programs()["full"], None), given.per_minute)
            rows = list(figures(ask, given.seeds))
        finally:
            shared.release()
    write_records(rows, OUT / "sampled_answers.csv")
    print("\n".join([*table(rows), "", *alarms(rows)]))
    if importlib.util.find_spec("matplotlib") is not None:
        plot(rows, OUT / "sampled_answers.png")


if __name__ == "__main__":
    _main()
