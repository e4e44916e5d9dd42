"""Each row that an LFTA emits has its partition beside it: that of its values as they are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.capture.lfta.lfta_builders import (
    aggregation,
    count,
    field,
    flow,
    literal,
    selection,
)
from tests.capture.lfta.lfta_collect import Collector, compiled, interpreted
from tests.capture.lfta.lfta_strategies import blocks_of, nanoseconds, traffic

from gscope.capture.lfta.codegen.generate import generate
from gscope.capture.lfta.settings import LftaSettings
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import NamedExpression
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.divided_streams import stream_partitioning
from gscope.queries.plan.partitioning.partition_hash import partition_of_values
from gscope.queries.plan.program_partitioning import PARTITION_COLUMN, PartitionMember

if TYPE_CHECKING:
    from tests.capture.packet.kernel_reader import RawPacket

    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta

PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def divided(lfta: Lfta, partitions: int, *members: tuple[Expression, ...]) -> Lfta:
    made = stream_partitioning(lfta, partitions, [PartitionMember(each) for each in members])
    assert made is not None
    assert made.follows_set == bool(members)
    return replace(lfta, partitioning=made)


def mixed() -> Lfta:
    """Keys of all types that divide rows, which may be NULL, beside those that do not."""
    keys = [
        nanoseconds(1000),
        NamedExpression("vlan", field("vlan")),
        NamedExpression("net", call("prefix", field("srcIP"), literal(24), literal(48))),
        NamedExpression("half", call("int_to_float", field("ttl"))),
        NamedExpression("is_big", call("gt", field("len"), literal(60))),
        NamedExpression("mac", field("destMAC")),
        NamedExpression("diff", call("sub_int", field("srcPort"), field("destPort"))),
        NamedExpression("one", literal(1)),
    ]
    return aggregation(keys, [count()], name="mixed")


def pairs() -> Lfta:
    keys = [
        nanoseconds(1000),
        NamedExpression("srcIP", field("srcIP")),
        NamedExpression("destIP", field("destIP")),
        NamedExpression("srcPort", field("srcPort")),
        NamedExpression("destPort", field("destPort")),
    ]
    return aggregation(keys, [count()], name="pairs")


def pairs_of_nets() -> Lfta:
    return replace(pairs(), name="nets")


SYMMETRIC = (field("srcIP"), field("destIP")), (field("srcPort"), field("destPort"))
MASKED = (call("ip_mask", field("srcIP"), literal(0xFFFFFF00)),)
PORTS = (call("bit_and", field("destPort"), literal(-16)),)
SETS = (
    [divided(flow(), 64)],
    [divided(mixed(), 7), divided(flow(), 2, MASKED)],
    [divided(pairs(), 64, *SYMMETRIC), divided(pairs_of_nets(), 3, MASKED, PORTS)],
)


class Partitions(Collector):
    """Also compares the partition of each row with that of its values."""

    def __init__(self, lftas: list[Lfta]) -> None:
        super().__init__()
        self.lftas = {lfta.name: lfta for lfta in lftas}
        self.seen: set[int] = set()

    def __call__(self, lfta: str, batch: ColumnBatch) -> None:
        plan = self.lftas[lfta]
        for row in batch.to_arrow().to_pylist():
            assert row[PARTITION_COLUMN] == expected(plan, row), (plan.name, row)
            self.seen.add(row[PARTITION_COLUMN])
        super().__call__(lfta, batch)


def expected(lfta: Lfta, row: dict[str, Any]) -> int:
    """The partition of a row as it is stored."""
    assert lfta.partitioning is not None

    def leaf(column: Any) -> Any:
        value = row[column.name]
        return int.from_bytes(value) if isinstance(value, bytes) else value

    members = [
        [(evaluate(value, leaf), value.type) for value in member.values]
        for member in lfta.partitioning.members
    ]
    return partition_of_values(members, lfta.partitioning.partitions)


@settings(max_examples=8, deadline=None, suppress_health_check=PATIENT)
@given(traffic(), st.sampled_from(SETS), st.sampled_from([4, 64]))
def test_the_partition_of_each_row_is_that_of_its_values(
    sent: list[RawPacket], lftas: list[Lfta], slots: int
) -> None:
    small = LftaSettings(table_slots=slots, batch_rows=150)
    for make in (compiled(small), interpreted(groups=5)):
        collector = Partitions(lftas)
        engine = make(lftas, collector)
        for block in blocks_of(sent, 100):
            assert engine.process(block, 0) == block.count
        engine.finish()


def test_rows_of_one_group_have_one_partition_and_groups_have_many() -> None:
    from tests.capture.lfta.lfta_builders import ipv4, udp
    from tests.capture.packet.kernel_reader import RawPacket

    packets = [ipv4(0x0A000000 | n % 300, 1, udp(53, 53)) for n in range(900)]
    sent = [RawPacket(1, data, len(data), 10**18) for data in packets]
    lftas = [divided(pairs(), 64)]
    collector = Partitions(lftas)
    engine = compiled(LftaSettings(table_slots=8))(lftas, collector)
    for block in blocks_of(sent, 1000):
        engine.process(block, 0)
    engine.finish()
    assert len(collector.rows["pairs"]) > 300
    assert len(collector.seen) > 50


def test_a_constant_or_a_float_divides_nothing() -> None:
    divides = divided(mixed(), 7).partitioning
    assert divides is not None
    names = [value.name for member in divides.members for value in member.values]  # type: ignore[union-attr]
    assert names == ["vlan", "net", "is_big", "mac", "diff"]
    assert GsqlType.FLOAT not in {value.type for m in divides.members for value in m.values}


def test_only_kernels_of_divided_groups_store_partitions() -> None:
    columns = [NamedExpression("time", field("time")), NamedExpression("srcIP", field("srcIP"))]
    rows = divided(selection(columns, temporal=("time",)), 64, (field("srcIP"),))
    assert "st16" not in generate([flow(), rows]).source
    assert "st16" in generate([divided(flow(), 64)]).source
