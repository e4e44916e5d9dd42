"""The table of kernel arguments: a generated kernel takes what it says, by name and by type."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import numpy as np
import pytest
from tests.capture.lfta.lfta_builders import block_of, field, flow, ipv4, selection, udp

from gscope.capture.kernels.language.kinds import Kind
from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.kernel_arguments import (
    RUN_PARAMETERS,
    BatchMemory,
    BlockArrays,
    PacketAddresses,
    PacketRange,
    StateArrays,
    block_arrays,
    run_arguments,
)
from gscope.capture.lfta.kernel_assembly import RUN_KINDS
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.replay.bulk_kernel import PumpResult
from gscope.capture.sources.files.file import ReadProgress
from gscope.queries.expressions.expressions import NamedExpression

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECORDS = (BlockArrays, PacketRange, BatchMemory, StateArrays)


@pytest.mark.parametrize("is_aggregation", [True, False])
def test_a_generated_kernel_takes_the_arguments_of_the_table(is_aggregation: bool) -> None:
    lftas = [flow() if is_aggregation else selection([NamedExpression("len", field("len"))])]
    tree = ast.parse(load_kernel(lftas).path.read_text())
    (run,) = [x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name == "run"]
    assert [each.arg for each in run.args.args] == list(RUN_PARAMETERS)
    assert list(RUN_PARAMETERS) == [name for record in RECORDS for name in record._fields]


def test_a_kernel_is_compiled_for_the_types_of_the_table() -> None:
    """Arrays of a block, numbers, the interface's words, and a row of words for each LFTA."""
    annotations = [kind for record in RECORDS for kind in record.__annotations__.values()]
    written = [kind.__forward_arg__ for kind in annotations]
    assert len(written) == len(RUN_KINDS)
    for name, kind in zip(written[:-1], RUN_KINDS[:-1], strict=True):
        assert kind is (Kind.INT if name == "int" else Kind.WORDS), name
    assert RUN_KINDS[-1] is Kind.ROWS
    runtime = LftaRuntime([flow()], "main", LftaSettings(), load_kernel([flow()]), lambda *_: None)
    assert runtime._state.lftas.ndim == 2
    assert runtime._state.lftas.dtype == runtime._state.interface.dtype == np.int64


def test_every_argument_has_a_meaning_and_an_owner() -> None:
    for record in RECORDS:
        text = inspect.getdoc(record) or ""
        assert "Owner: " in text
        for name in record._fields:
            assert f"\n    {name}: " in text, name


def test_a_block_has_the_arrays_of_the_table() -> None:
    block = block_of([(1, ipv4(1, 2, udp(3, 4)))])
    arrays = BlockArrays(*block_arrays(block))
    assert all(getattr(block, name) is value for name, value in arrays._asdict().items())


def test_addresses_within_a_kernel_have_the_names_of_the_arrays() -> None:
    assert PacketAddresses._fields == BlockArrays._fields


def test_arguments_come_record_by_record() -> None:
    span = PacketRange(first=6, stop=7, until_ns=8, bound_ns=9)
    memory = BatchMemory(10, 11, 12, 13, 14, 15)
    assert run_arguments(range(6), span, memory, (16, 17)) == tuple(range(18))


class _Swapped(NamedTuple):
    stop: int
    first: int
    until_ns: int
    bound_ns: int


def test_a_kernel_reads_records_by_name_whatever_their_order() -> None:
    """``measure`` is the first part of a kernel to look at the range of packets."""
    from gscope.capture.kernels.jit import kernel
    from gscope.capture.kernels.language.intrinsics import address_of
    from gscope.capture.lfta.batch_decoder import LISTS_BYTES, measure

    @kernel
    def measured(
        times: NDArray[np.int64], links: NDArray[np.int32], lists: NDArray[np.uint8], span: Any
    ) -> int:
        packets = PacketAddresses(
            data=0,
            offset=0,
            caplen=0,
            wirelen=0,
            time_ns=address_of(times),
            linktype=address_of(links),
        )
        return measure(packets, span, address_of(lists))

    times, links = np.arange(9, dtype=np.int64), np.ones(9, np.int32)
    lists = np.zeros(LISTS_BYTES, np.uint8)
    wanted = {"first": 2, "stop": 9, "until_ns": 5, "bound_ns": 0}
    for record in (PacketRange, _Swapped):
        assert measured(times, links, lists, record(**wanted)) == 3


def test_the_pump_returns_records() -> None:
    assert PumpResult._fields[-1] == "passed"
    assert get_type_hints(PumpResult)["passed"] is ReadProgress
