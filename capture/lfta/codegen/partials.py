"""Partial aggregates in a slot: code to begin, fold and emit them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.lower import lower
from gscope.errors import UnsupportedError
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.lfta.codegen.scope import Lowered, Scope
    from gscope.queries.plan.program import Partial

_FOLDS = {
    PartialOp.SUM: "wrap_add({0}, {1})",
    PartialOp.OR: "{0} | {1}",
    PartialOp.AND: "{0} & {1}",
    PartialOp.XOR: "{0} ^ {1}",
}
_EXTREME = (PartialOp.MIN, PartialOp.MAX)


@dataclass(frozen=True, slots=True)
class SlotPartial:
    """One partial aggregate of a slot.

    Attributes:
        word: its first word after the key.
        argument: first word of its argument in a scratch entry; None if none is stored.
        null_bit: bit for its argument in the flag words: in the scratch entry "it is NULL", in the
            slot "one was not NULL"; None if the argument is never NULL.
    """

    partial: Partial
    word: int
    argument: int | None
    null_bit: int | None

    @property
    def type(self) -> GsqlType:
        """The type of its value."""
        return self.partial.type

    @property
    def words(self) -> int:
        """Words of its state."""
        return 2 if self.type is GsqlType.IP else 1


@dataclass(frozen=True, slots=True)
class SlotPartials:
    """All partial aggregates of a table.

    Attributes:
        words: words of state, including the flag word.
        flags: word of the slot with a bit for each partial that may be NULL; None without any.
        arguments: words of a scratch entry for arguments, including its flag word.
        argument_flags: word of the scratch entry that marks NULL arguments; None without any.
    """

    partials: tuple[SlotPartial, ...]
    words: int
    flags: int | None
    arguments: int
    argument_flags: int | None


def plan_partials(
    partials: Sequence[Partial], variants: Sequence[Sequence[Lowered | None]]
) -> SlotPartials:
    """Assign words to ``partials``, with arguments as lowered by each variant of the table.

    Raises:
        UnsupportedError: an argument has no fixed number of words, or an operation depends on the
            order of tuples.
    """
    placed = []
    words = arguments = nulls = 0
    for n, partial in enumerate(partials):
        _check(partial)
        lowered = [variant[n] for variant in variants]
        null_bit = None
        if any(x is not None and x.null is not None for x in lowered):
            null_bit, nulls = nulls, nulls + 1
        argument = None
        size = 2 if partial.type is GsqlType.IP else 1
        if partial.op is not PartialOp.COUNT:
            argument, arguments = arguments, arguments + size
        placed.append(SlotPartial(partial, words, argument, null_bit))
        words += size
    has_flags = any(p.null_bit is not None and p.partial.op is not PartialOp.COUNT for p in placed)
    return SlotPartials(
        tuple(placed),
        words + has_flags,
        words if has_flags else None,
        arguments + (nulls > 0),
        arguments if nulls else None,
    )


def _check(partial: Partial) -> None:
    argument = partial.argument
    if argument is None:
        if partial.op is not PartialOp.COUNT:
            message = f"the partial aggregate {partial.name!r} ({partial.op.value}) has no argument"
            raise UnsupportedError(message)
        return
    is_number = argument.type in (GsqlType.INT, GsqlType.BOOL, GsqlType.INTERVAL)
    if partial.op in _FOLDS and not is_number:
        message = (
            f"{partial.name!r}: {partial.op.value} of {argument.type.value} cannot run in an LFTA"
        )
        raise UnsupportedError(message)
    if partial.op in _EXTREME and argument.type is GsqlType.STRING:
        message = f"{partial.name!r}: {partial.op.value} of STRING cannot run in an LFTA"
        raise UnsupportedError(message)


def lower_arguments(scope: Scope, partials: Sequence[Partial]) -> list[Lowered | None]:
    """Add code for the arguments; return them lowered."""
    return [None if p.argument is None else lower(scope, p.argument) for p in partials]


def stash(
    scope: Scope, plan: SlotPartials, lowered: Sequence[Lowered | None], entry_words: int
) -> None:
    """Store the arguments in the scratch entry at ``entry``, after its first ``entry_words``."""
    flags = []
    for partial, value in zip(plan.partials, lowered, strict=True):
        if value is None:
            continue
        if partial.null_bit is not None and value.null is not None:
            flag = "1" if value.is_always_null else f"(1 if {value.null} else 0)"
            flags.append(f"({flag} << {partial.null_bit})")
        if partial.argument is not None:
            for n, code in enumerate(_words(value)):
                scope.emit(f"st64(entry + {8 * (entry_words + partial.argument + n)}, {code})")
    if plan.argument_flags is not None:
        at = 8 * (entry_words + plan.argument_flags)
        scope.emit(f"st64(entry + {at}, {' | '.join(flags) or '0'})")


def _words(value: Lowered) -> tuple[str, ...]:
    if value.type is GsqlType.FLOAT:
        return (f"float_bits(float_key({value.code}))",)
    if value.type is GsqlType.BOOL:
        return (f"1 if {value.code} else 0",)
    return value.parts


def load_arguments(plan: SlotPartials, entry_words: int) -> list[str]:
    """Return statements that load the arguments at ``entry`` into x0, x1 … and nulls."""
    lines = []
    for partial in plan.partials:
        if partial.argument is not None:
            lines += [
                (
                    f"x{partial.argument + n} = "
                    f"ld64(entry + {8 * (entry_words + partial.argument + n)})"
                )
                for n in range(partial.words)
            ]
    if plan.argument_flags is not None:
        lines.append(f"nulls = ld64(entry + {8 * (entry_words + plan.argument_flags)})")
    return lines


def begin(plan: SlotPartials, key_words: int) -> list[str]:
    """Return statements that start the state of a new group in the slot at address ``a``."""
    lines = []
    for partial in plan.partials:
        at = key_words + partial.word
        if partial.argument is None:
            code = "1" if partial.null_bit is None else f"1 - ({_is_null(partial)})"
            lines.append(f"st64(a + {8 * at}, {code})")
            continue
        for n in range(partial.words):
            code = f"x{partial.argument + n}"
            if partial.null_bit is not None:
                # A NULL must store zeros: SUM, OR and XOR fold into them.
                code = f"0 if {_is_null(partial)} != 0 else {code}"
            lines.append(f"st64(a + {8 * (at + n)}, {code})")
    if plan.flags is not None:
        bits = sum(1 << p.null_bit for p in plan.partials if p.null_bit is not None)
        lines.append(f"st64(a + {8 * (key_words + plan.flags)}, ~nulls & {bits})")
    return lines


def fold(plan: SlotPartials, key_words: int) -> list[str]:
    """Return statements that fold the arguments into the group in the slot at address ``a``."""
    lines = []
    if plan.flags is not None:
        lines.append(f"flags = ld64(a + {8 * (key_words + plan.flags)})")
    for partial in plan.partials:
        at = f"a + {8 * (key_words + partial.word)}"
        if partial.partial.op is PartialOp.COUNT:
            one = "1" if partial.null_bit is None else f"1 - ({_is_null(partial)})"
            lines.append(f"st64({at}, ld64({at}) + {one})")
        elif partial.null_bit is None:
            lines += _fold_one(partial, at)
        else:
            lines.append(f"if {_is_null(partial)} == 0:")
            lines += [f"    {line}" for line in _fold_nullable(partial, at)]
    if plan.flags is not None:
        bits = sum(1 << p.null_bit for p in plan.partials if p.null_bit is not None)
        lines.append(f"st64(a + {8 * (key_words + plan.flags)}, flags | (~nulls & {bits}))")
    return lines


def _is_null(partial: SlotPartial) -> str:
    return f"(nulls >> {partial.null_bit}) & 1"


def _fold_nullable(partial: SlotPartial, at: str) -> list[str]:
    if partial.partial.op in (*_EXTREME, PartialOp.AND):
        first = [f"st64({at} + {8 * n}, x{_arg(partial) + n})" for n in range(partial.words)]
        return [
            f"if (flags >> {partial.null_bit}) & 1 == 0:",
            *(f"    {line}" for line in first),
            "else:",
            *(f"    {line}" for line in _fold_one(partial, at)),
        ]
    return _fold_one(partial, at)


def _fold_one(partial: SlotPartial, at: str) -> list[str]:
    op, x = partial.partial.op, f"x{_arg(partial)}"
    if op in _FOLDS:
        return [f"st64({at}, {_FOLDS[op].format(f'ld64({at})', x)})"]
    if partial.type is GsqlType.IP:
        new, old = (x, f"x{_arg(partial) + 1}"), (f"ld64({at})", f"ld64({at} + 8)")
        first, second = (new, old) if op is PartialOp.MIN else (old, new)
        better = f"wide_less({', '.join((*first, *second))})"
        return [f"if {better}:", f"    st64({at}, {x})", f"    st64({at} + 8, {new[1]})"]
    if partial.type is GsqlType.FLOAT:
        order = (x, f"ld64({at})") if op is PartialOp.MIN else (f"ld64({at})", x)
        return [f"if float_less({', '.join(order)}):", f"    st64({at}, {x})"]
    return [f"st64({at}, {op.value}(ld64({at}), {x}))"]


def _arg(partial: SlotPartial) -> int:
    assert partial.argument is not None
    return partial.argument


def result(
    plan: SlotPartials, partial: SlotPartial, key_words: int
) -> tuple[tuple[str, ...], str | None]:
    """Return code for the parts and the NULL condition of a partial in the slot at ``slot``."""
    at = 8 * (key_words + partial.word)
    null = None
    if (
        partial.null_bit is not None
        and partial.partial.op is not PartialOp.COUNT
        and plan.flags is not None
    ):
        flags = f"ld64(slot + {8 * (key_words + plan.flags)})"
        null = f"(({flags} >> {partial.null_bit}) & 1 == 0)"
    match partial.type:
        case GsqlType.IP:
            return (f"ld64(slot + {at})", f"ld64(slot + {at + 8})"), null
        case GsqlType.FLOAT:
            return (f"ldf64(slot + {at})",), null
        case GsqlType.BOOL:
            return (f"(ld64(slot + {at}) != 0)",), null
    return (f"ld64(slot + {at})",), null
