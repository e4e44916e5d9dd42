"""What divides the rows of an LFTA: the set where its columns determine it, else its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.queries.analysis.partitioning.given import given_set
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.lfta_digest import lfta_digest
from gscope.queries.plan.program_file import read_program, write_program
from gscope.queries.plan.show_expressions import show

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.queries.plan.program import Program

FLOWS = "SELECT tb, srcIP, destIP, count(*) FROM TCP GROUP BY time/60 as tb, srcIP, destIP"
PORTS = "SELECT tb, destPort, count(*) FROM TCP GROUP BY time/60 as tb, destPort"


def compiled(text: str, given: str | None = None, partitions: int = 64) -> Program:
    chosen = None if given is None else given_set(given, "set")
    context = CompileContext(("a",), partitions=partitions, partition_set=chosen)
    return compile_queries([QueryText(text, "q")], context).program


def divided(text: str, given: str | None = None) -> tuple[list[list[str]], bool] | None:
    """Return the members of the only LFTA as text, and whether they follow the set."""
    (lfta,) = compiled(text, given).lftas
    if lfta.partitioning is None:
        return None
    members = [[show(value) for value in member.values] for member in lfta.partitioning.members]
    return members, lfta.partitioning.follows_set


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        (FLOWS, None, ([["srcIP"], ["destIP"]], True)),
        (FLOWS, "srcIP", ([["srcIP"]], True)),
        (FLOWS, "srcIP & 0xFFFFFF00", ([["srcIP & 4294967040"]], True)),
        (FLOWS, "{srcIP, destIP}", ([["srcIP", "destIP"]], True)),
        (FLOWS, "srcIP, srcPort", ([["srcIP"], ["destIP"]], False)),
        (PORTS, "srcIP", ([["destPort"]], False)),
        (PORTS, "destPort & 0xFF00", ([["destPort & 65280"]], True)),
        (FLOWS.replace("time/60 as tb, srcIP,", "time/60 as tb, srcIP & 0xFFFFFF00 as srcIP,"),
         "srcIP & 0xFFFFFF00", ([["srcIP"]], True)),
        (FLOWS.replace("time/60 as tb, srcIP,", "time/60 as tb, srcIP & 0xFFFFFF00 as srcIP,"),
         "srcIP", ([["srcIP"], ["destIP"]], False)),
        ("SELECT tb, count(*) FROM TCP GROUP BY time/60 as tb", "srcIP", None),
        ("SELECT tb, t2, count(*) FROM TCP GROUP BY time/60 as tb, time/7 as t2", "srcIP", None),
        ("SELECT tb, f, count(*) FROM TCP GROUP BY time/60 as tb, len * 0.5 as f", "srcIP", None),
    ],
)  # fmt: skip
def test_members_over_columns(
    text: str, given: str | None, expected: tuple[list[list[str]], bool] | None
) -> None:
    assert divided(text, given) == expected


def test_a_set_is_followed_by_streams_of_several_protocols() -> None:
    """A protocol knows more of a field than another: whether it may be NULL."""
    other = PORTS.replace("TCP", "IP").replace("destPort", "srcPort")
    text = f"DEFINE {{ query_name a; }} {PORTS.replace('destPort', 'srcPort')};"
    text += f"DEFINE {{ query_name b; }} {other}"
    program = compiled(text, "srcPort")
    assert [each.partitioning and each.partitioning.follows_set for each in program.lftas] == [
        True,
        True,
    ]


def test_one_partition_is_none() -> None:
    program = compiled(FLOWS, partitions=1)
    assert program.partitioning is None
    assert program.lftas[0].partitioning is None


def test_a_program_that_no_job_runs_is_not_divided() -> None:
    program = compiled("SELECT time, srcIP FROM TCP")
    assert not program.needs_spark
    assert program.partitioning is None


def test_the_set_is_that_of_least_cost() -> None:
    heavy = "SELECT tb, srcIP, count(*) FROM flows GROUP BY tb, srcIP"
    text = f"DEFINE {{ query_name flows; }} {FLOWS}; DEFINE {{ query_name heavy; }} {heavy}"
    program = compiled(text)
    assert program.partitioning is not None
    assert program.partitioning.partitions == 64
    assert [show(m.values[0]) for m in program.partitioning.members] == ["srcIP"]


def test_partitions_are_part_of_a_program_and_not_of_what_its_lftas_compute(
    tmp_path: Path,
) -> None:
    program, other = compiled(FLOWS), compiled(FLOWS, partitions=1)
    write_program(tmp_path / "program", program)
    assert read_program(tmp_path / "program") == program
    assert lfta_digest(program.lftas[0]) == lfta_digest(other.lftas[0])
