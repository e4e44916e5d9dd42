"""Scenarios, answered both ways and compared.

They are random traffic, a set of random queries and random settings.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from unittest import mock

from tests.differential.captured import captured_traffic, known_values
from tests.differential.evaluate import Reference
from tests.differential.firsts import is_ordered
from tests.differential.queries import INTERFACE_SETS, MAX_ROWS, QueryMaker
from tests.differential.shown import shown
from tests.differential.syntax import HIDDEN, Group, Join, Query, Select, closure
from tests.differential.traffic import SECOND_NS, Known, Traffic, random_traffic
from tests.golden.driver import Job, Variation, replayed, streamed
from tests.support.divided_steps import divided_steps

from gscope.cli.render.explain import as_text, explain_compiled, spark_texts
from gscope.engine.spark import evaluation, task_planner
from gscope.engine.spark.tasks.task import MAX_TASK_ROWS
from gscope.engine.watermarks import release_size
from gscope.errors import GsqlError, UnsupportedError
from gscope.queries.compile import CompileContext, Compiled, QueryText, compile_queries
from gscope.queries.expressions.types import Direction
from gscope.queries.plan.program import QueryInput, SelectionNode, StreamInput
from gscope.queries.plan.row_order import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from gscope.queries.plan.program import Program

Row = tuple[str, ...]
LARGE_STEPS = 0.1
"""The part of scenarios in which all steps count as large."""

INTERPRETED_PLANS = 0.7
"""The part of the others in which Spark interprets plans."""

SOURCE = "random.gsql"
"""What messages call the text of a scenario."""

PLAIN = Variation("plain", is_interpreted=True)
"""The simplest settings, to which a disagreement is reduced if it survives that."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that decides about answers, and what should decide nothing.

    Attributes:
        step_rows: if set, every step counts as large, and is cut into pieces of about this number
            of rows.
        partitions: if not 1, into how many partitions the rows of each step are divided.
    """

    traffic: Traffic
    queries: tuple[Query, ...]
    variation: Variation
    step_rows: int | None = None
    partitions: int = 1


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One query with two answers, or none: what was expected and what came, as lines."""

    query: str
    what: str
    expected: tuple[str, ...] = ()
    found: tuple[str, ...] = ()


@dataclass(slots=True)
class Outcome:
    """What came of a scenario.

    Attributes:
        compared: queries whose answers were compared.
        joins: those of them that join; not_empty: those that had rows.
        refused: queries refused as not supported, by the reason.
    """

    compared: int = 0
    joins: int = 0
    not_empty: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Sum up."""
        self.compared += other.compared
        self.joins += other.joins
        self.not_empty += other.not_empty
        self.refused += other.refused
        self.disagreements += other.disagreements


def random_scenario(
    seed: int,
    queries: int,
    *,
    is_interpreted: bool = True,
    captures: Sequence[Path] = (),
    has_windows: bool = False,
    partitions: int = 1,
) -> Scenario:
    """The scenario of a seed; the number of queries is a part of the seed.

    Args:
        partitions: into how many partitions rows are divided.
        has_windows: whether most queries have windows.
        captures: where the packets are from; none for packets that are made.
    """
    random = Random(seed)
    traffic = captured_traffic(random, captures) if captures else random_traffic(random)
    packets = traffic.decoded()[0]
    values = known_values(packets) if captures else Known()
    reference = Reference(packets)
    maker = QueryMaker(random, traffic.interfaces, reference, values, has_windows=has_windows)
    made = maker.make(queries)
    variation = Variation(
        f"seed {seed}",
        is_interpreted=is_interpreted,
        table_slots=random.choice((4, 8, 64, None)),
        output_rows=random.choice((1, 5, None)),
        block_bytes=random.choice((4096, None)),
        batch_rows=random.choice((1, 7, 1 << 20)),
        heartbeat_interval_ns=random.choice(
            (SECOND_NS // 3, SECOND_NS, 7_300_000_001, 60 * SECOND_NS)
        ),
        heartbeat_every_tick=random.random() < 0.7,
        skew_ns=traffic.skew_ns,
        chunks=random.choice((1, 2, 4)),
        crashes=random.choice((0, 0, 0, 1)),
        seed=seed,
    )
    step_rows = random.choice((5, 40)) if random.random() < LARGE_STEPS else None
    # Only small inputs are interpreted.
    interprets_plans = step_rows is None and random.random() < INTERPRETED_PLANS
    variation = replace(variation, interprets_plans=interprets_plans)
    return Scenario(traffic, tuple(made), variation, step_rows, partitions)


def compare(scenario: Scenario, session: SparkSession) -> Outcome:
    """Answer the scenario both ways."""
    outcome = Outcome()
    packets, expected_late = scenario.traffic.decoded()
    reference = Reference(packets)
    queries = [q for q in accepted_queries(scenario, outcome) if is_small(reference, q)]
    if not queries:
        return outcome
    try:
        compiled = compiled_set(queries, scenario.traffic, partitions=scenario.partitions)
        list(as_text(explain_compiled(compiled)))
        spark_texts(compiled.program)
        answers, late = answers_of(compiled.program, scenario, session)
    except Exception as error:
        names = " ".join(q.name for q in queries)
        outcome.disagreements.append(Disagreement(names, f"{type(error).__name__}: {error}"))
        return outcome
    if late != expected_late:
        message = f"{late} packets are late, not {expected_late}"
        outcome.disagreements.append(Disagreement("", message))
    for query in queries:
        if query.name not in answers or query.name.startswith(HIDDEN):
            continue
        expected = shown(reference.rows(query), query.fields)
        outcome.compared += 1
        outcome.joins += is_join(query)
        outcome.not_empty += bool(expected)
        found = answers[query.name]
        if Counter(expected) != Counter(plain_zeros(found)):
            outcome.disagreements.append(_different(query, expected, found))
        elif is_ordered(query):
            if expected != plain_zeros(found):
                outcome.disagreements.append(
                    Disagreement(query.name, "out of order", _lines(expected), _lines(found))
                )
        elif not _is_in_order(compiled.program, query.name, found):
            outcome.disagreements.append(
                Disagreement(query.name, "out of order", (), _lines(found))
            )
    return outcome


def is_join(query: Query) -> bool:
    """Whether a query joins two inputs itself."""
    return isinstance(query, Select | Group) and isinstance(query.source, Join)


def is_small(reference: Reference, query: Query) -> bool:
    """Whether neither the query nor what it reads has many rows: joins of joins explode."""
    return all(len(reference.rows(one)) <= MAX_ROWS for one in closure(query))


def compiled_set(
    queries: Sequence[Query], traffic: Traffic, *, samples: bool = False, partitions: int = 1
) -> Compiled:
    """The queries, compiled together."""
    text = "\n".join(query.text for query in queries)
    sets = {n: m for n, m in INTERFACE_SETS.items() if set(m) <= set(traffic.interfaces)}
    context = CompileContext(traffic.interfaces, sets, samples=samples, partitions=partitions)
    return compile_queries([QueryText(text, SOURCE)], context)


def accepted_queries(scenario: Scenario, outcome: Outcome) -> list[Query]:
    """The queries that gscope takes.

    Those it does not support are counted, other errors are findings.
    """
    try:
        compiled_set(scenario.queries, scenario.traffic)
    except Exception:
        pass
    else:
        return list(scenario.queries)
    accepted: list[Query] = []
    for query in scenario.queries:
        needed = closure(query)
        if any(one not in accepted for one in needed[:-1]):
            continue
        try:
            compiled_set(needed, scenario.traffic)
        except UnsupportedError as error:
            outcome.refused[error.message] += 1
        except Exception as error:
            what = (
                str(error) if isinstance(error, GsqlError) else f"{type(error).__name__}: {error}"
            )
            outcome.disagreements.append(Disagreement(query.name, what))
        else:
            accepted.append(query)
    return accepted


def answers_of(
    program: Program, scenario: Scenario, session: SparkSession
) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """The rows of each result, and how many packets of each interface were late."""
    folder = Path(tempfile.mkdtemp(prefix="gscope-test-"))
    try:
        files = scenario.traffic.write(folder)
        messages, summary = replayed(program, files, scenario.variation, folder / "log")
        answers = {
            query: streamed(program, query, source, messages, folder / "log")
            for query, source in program.results
            if isinstance(source, StreamInput)
        }
        if program.needs_spark:
            divided = divided_steps() if scenario.partitions > 1 else nullcontext()
            with _large_steps(scenario.step_rows), divided:
                answers |= Job(program, messages, folder, session, scenario.variation).answers()
        late = {interface.name: interface.late for interface in summary.interfaces}
        return answers, late
    finally:
        shutil.rmtree(folder)


@contextmanager
def _large_steps(rows: int | None) -> Iterator[None]:
    """Steps as a backlog of millions makes them, releases in pieces.

    Every other size without tasks, by SQL alone.
    """
    if rows is None:
        yield
        return
    with (
        mock.patch.object(evaluation, "SMALL_STEP_ROWS", 0),
        mock.patch.object(evaluation, "BRANCH_ROWS", 1),
        mock.patch.object(release_size, "MAX_STEP_ROWS", rows),
        mock.patch.object(task_planner, "MAX_TASK_ROWS", MAX_TASK_ROWS if rows % 2 else -1),
    ):
        yield


def _is_in_order(program: Program, name: str, rows: list[Row]) -> bool:
    """Whether the first temporal column never steps back by more than is known of it.

    A selection takes rows as they come, and streams of LFTAs are put in order where they are
    delivered.
    """
    by_name = {node.query: node for node in program.nodes}
    source = dict(program.results)[name]
    while isinstance(source, QueryInput) and isinstance(
        node := by_name[source.query], SelectionNode
    ):
        source = node.input
    schema = visible(program.schema(name))
    temporal = schema.temporal
    if not temporal or isinstance(source, StreamInput):
        return True
    first = temporal[0]
    sign = -1 if first.ordering.direction is Direction.DECREASING else 1
    highest = -math.inf
    for row in rows:
        value = sign * _clock(row[schema.names.index(first.name)])
        if value < highest - first.ordering.band:
            return False
        highest = max(highest, value)
    return True


def _clock(text: str) -> int:
    """A number, or a time of which only the order matters."""
    return int(text if text.lstrip("-").isdigit() else "".join(c for c in text if c.isdigit()))


def plain_zeros(rows: list[Row]) -> list[Row]:
    """Negative zero equals zero."""
    return [tuple("0.0" if text == "-0.0" else text for text in row) for row in rows]


def _different(query: Query, expected: list[Row], found: list[Row]) -> Disagreement:
    found = plain_zeros(found)
    missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    what = f"{missing.total()} rows are missing, {extra.total()} are wrong, of {len(expected)}"
    return Disagreement(query.name, what, _lines(missing.elements()), _lines(extra.elements()))


def _lines(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple(", ".join(row) for row in sorted(rows)[:8])


def alone(scenario: Scenario, query: Query) -> Scenario:
    """The scenario with one query and what it needs."""
    return replace(scenario, queries=tuple(closure(query)))
