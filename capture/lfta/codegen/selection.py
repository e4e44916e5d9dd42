"""A selecting LFTA as code: each packet that passes becomes a row, in capture order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.lower import lower
from gscope.capture.lfta.codegen.marks import mark_packet
from gscope.capture.lfta.codegen.names import BATCH_PARAMETERS, packet_loop
from gscope.capture.lfta.codegen.pre_sample import leave_out
from gscope.capture.lfta.codegen.predicate import passes
from gscope.capture.lfta.codegen.scope import Literals, Scope, Variant
from gscope.capture.lfta.columns import Storage
from gscope.capture.lfta.declared_orders import band_of, is_falling
from gscope.capture.lfta.output_layout import column_word, output_layout, store
from gscope.capture.lfta.state import MAX_DECLARED, VALUES, LftaState
from gscope.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.capture.lfta.codegen.sampling import SampledSet
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta


def selection_source(
    lfta: Lfta,
    number: int,
    shared: Sequence[Expression],
    literals: Literals,
    sampled: SampledSet,
    mark: int | None = None,
) -> list[str]:
    """Return the functions of a selecting LFTA; ``lfta_<number>`` processes a batch.

    Args:
        lfta: the LFTA.
        number: its number in the kernel.
        shared: the predicates that LFTAs share.
        literals: the bytes of STRING literals.
        sampled: whether the set of LFTAs samples.
        mark: the bit that it sets in the marks of packets that pass; None to mark none.

    Raises:
        UnsupportedError: it has more declared orders than kernels support.
    """
    if len(lfta.declared) > MAX_DECLARED:
        message = f"{lfta.query!r} declares more than {MAX_DECLARED} orders"
        raise UnsupportedError(message)
    lines = ["@kernel_part", f"def lfta_{number}({BATCH_PARAMETERS}{sampled.parameters}, s):"]
    lines.append(
        f'    """Process a batch for {lfta.name}; return True if room ran out (call again)."""'
    )
    lines += _room(lfta, literals)
    lines += ["    matched = 0", "    out = 0", *packet_loop(None)]
    lines.append("        version = (ld64(memory.records + i * RECORD_BYTES + 24) >> 8) & 15")
    lines.append(f"        row = s[{LftaState.ROWS}]")
    for variant in (Variant.IPV4, Variant.IPV6, Variant.OTHER):
        lines.append(f"        if version == {int(variant)}:")
        scope = Scope(variant, literals, indent=3)
        if passes(scope, lfta.predicate, shared, "continue"):
            sampled.keep(scope, lfta)
            _put_out(scope, lfta, mark)
        else:
            scope.lines.clear()
        scope.emit("continue")
        lines += scope.lines
    lines += [f"    s[{LftaState.MATCHED}] += matched", f"    s[{LftaState.OUT}] += out"]
    return [*lines, "    return False"]


def _keep_order(scope: Scope, lfta: Lfta) -> None:
    """Add code that discards packets which break a declared order (``declared_orders.py``)."""
    lowered = [lower(scope, call.arguments[0]) for call in lfta.declared]
    signed = [
        scope.value(f"wrap_neg({x.code})" if is_falling(call) else x.code)
        for call, x in zip(lfta.declared, lowered, strict=True)
    ]
    breaks = [x.null for x in lowered if x.null is not None]
    breaks += [f"({v} < s[{LftaState.DECLARED} + {n}])" for n, v in enumerate(signed)]
    scope.emit(f"if {' | '.join(breaks)}:")
    scope.emit("    matched += 1")
    scope.emit(f"    s[{LftaState.OUT_OF_ORDER}] += 1")
    scope.emit("    continue")
    for n, (call, value) in enumerate(zip(lfta.declared, signed, strict=True)):
        at = f"s[{LftaState.DECLARED} + {n}]"
        # A floor below the least number has no effect.
        least = scope.value(f"wrap_sub({value}, {band_of(call)})")
        scope.emit(f"if {least} <= {value}:")
        scope.emit(f"    {at} = max({at}, {least})")


def _put_out(scope: Scope, lfta: Lfta, mark: int | None) -> None:
    if lfta.declared:
        _keep_order(scope, lfta)
    layout = output_layout(lfta)
    values = [lower(scope, column.expression) for column in lfta.columns]
    if mark is not None:
        # Also a packet whose tuple need not be shipped has passed.
        mark_packet(scope, mark)
    leave_out(scope, lfta, dict(zip(lfta.schema.names, values, strict=True)))
    for n, (column, value) in enumerate(zip(layout.columns, values, strict=True)):
        for line in store(n, column, value.parts, value.null):
            scope.emit(line)
    scope.emit(f"s[{LftaState.ROWS}] = row + 1")
    scope.emit("matched += 1")
    scope.emit("out += 1")


def _room(lfta: Lfta, literals: Literals) -> Iterable[str]:
    """Yield code that returns before it writes anything if the batch might not fit."""
    columns = output_layout(lfta).columns
    strings = [n for n, column in enumerate(columns) if column.storage is Storage.STRING]
    yield "    count = ld64(memory.lists + LIST_BYTES * LIST_ALL)"
    yield f"    if s[{LftaState.ROWS}] + count > s[{LftaState.CAPACITY}]:"
    yield "        return True"
    if not strings:
        return
    # A string is a part of its packet or a literal.
    yield f"    wanted = count * {len(literals.data)}"
    yield from packet_loop(None)
    yield "        wanted += ld32(packets.caplen + 4 * p)"
    yield "    used = 0"
    for n in strings:
        yield f"    used = max(used, ld32(s[{column_word(n, VALUES)}] + 4 * s[{LftaState.ROWS}]))"
    yield f"    s[{LftaState.HEAP_WANTED}] = wanted"
    yield f"    if used + wanted > s[{LftaState.HEAP_CAPACITY}]:"
    yield "        return True"
