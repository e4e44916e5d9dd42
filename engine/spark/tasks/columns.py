"""Expressions over the rows of a task, whole columns at a time.

Numbers are computed with numpy by the rules of ``engine/running/vectors.py``. Addresses and texts
are passed on unchanged. A function of a text is evaluated once for each distinct value, but whole
columns of DNS messages are read by numpy; a payload without the beginning that its reader requires
is counted as foreign without asking the reader.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.functions.application import BEGINNINGS, read
from gscope.engine.functions.base import Outcome
from gscope.engine.functions.dns_columns import ITEMS, DnsMessages
from gscope.engine.running.vectors import (
    VECTORIZED,
    Vector,
    arrow_type,
    compute,
    from_arrow,
    to_arrow,
)
from gscope.engine.spark.tasks.row_functions import (
    compared,
    evaluated,
    is_compared,
    is_evaluated,
)
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.regex import find_all
from gscope.queries.catalog.scalar.strings import STRINGS
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.texts import as_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from gscope.queries.expressions.expressions import NamedExpression

    Array = NDArray[Any]

INTEGERS = (GsqlType.INT, GsqlType.TIMESTAMP, GsqlType.MAC)
_COMPUTED = (*INTEGERS, GsqlType.BOOL, GsqlType.FLOAT, GsqlType.INTERVAL)
"""The types that numpy computes; others are objects to numpy, and slow."""


def is_computable(expression: Expression) -> bool:
    """Return whether numpy computes ``expression`` as Spark does, and fast."""
    match expression:
        case Column():
            return expression.type in _COMPUTED
        case Call():
            if _is_apart(expression):
                return expression.type in _COMPUTED
            is_known = expression.type in _COMPUTED and expression.function in VECTORIZED
            if expression.function == "is_null":
                return all(map(is_column, expression.arguments))
            return is_known and all(map(is_computable, expression.arguments))
        case _:
            return isinstance(expression, Literal)


def is_column(expression: Expression) -> bool:
    """Return whether a task can compute a column of ``expression``."""
    return (
        isinstance(expression, Column)
        or _is_apart(expression)
        or _is_first_address(expression)
        or _is_chosen_address(expression)
        or is_computable(expression)
    )


def _is_apart(expression: Expression) -> bool:
    """Return whether a column of ``expression`` is computed by itself, not as a part of others."""
    if is_of_text(expression):
        return True
    if not (is_compared(expression) or is_evaluated(expression)):
        return False
    assert isinstance(expression, Call)
    return all(isinstance(each, Literal) or is_column(each) for each in expression.arguments)


def _is_first_address(expression: Expression) -> bool:
    """Return whether ``expression`` is the first of several columns of addresses with a value."""
    return (
        isinstance(expression, Call)
        and expression.function == "coalesce"
        and all(isinstance(a, Column) and a.type is GsqlType.IP for a in expression.arguments)
    )


def _is_chosen_address(expression: Expression) -> bool:
    """Return whether ``expression`` is one of several columns of addresses, by conditions."""
    if not isinstance(expression, Call) or expression.function != "case":
        return False
    *pairs, last = expression.arguments
    return all(map(is_computable, pairs[::2])) and all(
        isinstance(each, Column) and each.type is GsqlType.IP for each in (*pairs[1::2], last)
    )


def is_of_text(expression: Expression) -> bool:
    """Return whether ``expression`` is a function of one text that tasks evaluate.

    The text is a column, or again a function of one; all other arguments are constants.
    """
    if not isinstance(expression, Call):
        return False
    texts = _not_constant(expression)
    if len(texts) != 1 or texts[0].type is not GsqlType.STRING:
        return False
    if FUNCTIONS[expression.function].is_high_only:
        # A reader of payloads counts them.
        return isinstance(texts[0], Column) and texts[0] is expression.arguments[0]
    return expression.function in STRINGS and (isinstance(texts[0], Column) or is_of_text(texts[0]))


def _not_constant(call: Call) -> list[Expression]:
    """Return the arguments of a call that are not constants; NULL is none."""
    return [each for each in call.arguments if not isinstance(each, Literal) or each.value is None]


def columns_of(*expressions: Expression | None) -> Iterator[Column]:
    """Yield the columns that expressions read, with repetitions."""
    for expression in expressions:
        if isinstance(expression, Column):
            yield expression
        elif isinstance(expression, Call):
            yield from columns_of(*expression.arguments)


class TaskRows:
    """Some rows of a task; each column of them is computed once.

    Args:
        count: the number of rows.
        leaf: returns a column that expressions name.

    Attributes:
        outcomes: what came of reading payloads so far, by function.
    """

    def __init__(self, count: int, leaf: Callable[[Column], pa.Array | pa.ChunkedArray]) -> None:
        self.count = count
        self.outcomes: dict[str, Counter[Outcome]] = {}
        self._leaf = leaf
        self._computed: dict[Expression, pa.Array | pa.ChunkedArray] = {}
        self._messages: dict[Expression, DnsMessages] = {}

    @classmethod
    def of_table(cls, table: pa.Table) -> TaskRows:
        """Return the rows of a table, its columns by their names."""
        return cls(table.num_rows, lambda column: table[column.name])

    def column(self, expression: Expression) -> pa.Array | pa.ChunkedArray:
        """Return the values of an expression that ``is_column``."""
        values = self._computed.get(expression)
        if values is None:
            values = self._computed[expression] = self._column(expression)
        return values

    def table(self, columns: Iterable[NamedExpression]) -> pa.Table:
        """Return columns that are expressions; each ``is_column``."""
        return pa.table({each.name: self.column(each.expression) for each in columns})

    def flat(self, expression: Expression) -> pa.Array:
        """Return the values of an expression that ``is_column`` in one piece, and keep them so."""
        values = self._computed[expression] = flat(self.column(expression))
        return values

    def where(self, condition: Expression | None) -> TaskRows:
        """Return the rows for which a computable ``condition`` holds, or all rows for None.

        Columns that are computed already are filtered, not computed again.
        """
        if condition is None:
            return self
        chosen = pa.array(self.vector(condition).is_true())
        rows = TaskRows(chosen.true_count, lambda column: self.column(column).filter(chosen))
        rows.outcomes = self.outcomes
        rows._computed = {e: column.filter(chosen) for e, column in self._computed.items()}
        return rows

    def vector(self, expression: Expression) -> Vector:
        """Return the values of an expression that ``is_computable``."""
        leaves: dict[str, Vector] = {}
        return compute(self._with_leaves(expression, leaves), leaves.__getitem__, self.count)

    def _column(self, expression: Expression) -> pa.Array | pa.ChunkedArray:
        if isinstance(expression, Column):
            return self._leaf(expression)
        if is_of_text(expression):
            assert isinstance(expression, Call)
            return self._of_texts(expression)
        if _is_apart(expression):
            assert isinstance(expression, Call)
            if is_compared(expression):
                return compared(expression, self.flat)
            return evaluated(expression, self.flat, self.count)
        if _is_first_address(expression):
            assert isinstance(expression, Call)
            return pc.coalesce(*(self.flat(column) for column in expression.arguments))
        if _is_chosen_address(expression):
            assert isinstance(expression, Call)
            return self._chosen_address(expression)
        return to_arrow(self.vector(expression), expression.type)

    def _chosen_address(self, case: Call) -> pa.Array:
        *pairs, last = case.arguments
        chosen = self.flat(last)
        for condition, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
            holds = pa.array(self.vector(condition).is_true())
            chosen = pc.if_else(holds, self.flat(value), chosen)
        return chosen

    def _with_leaves(self, expression: Expression, leaves: dict[str, Vector]) -> Expression:
        """Return the expression with a column of ``leaves`` for each part not computed by numpy."""
        if isinstance(expression, Column) or _is_apart(expression):
            name = str(len(leaves))
            leaves[name] = self._leaf_vector(expression)
            return Column(name, expression.type, is_nullable=True)
        if isinstance(expression, Call):
            arguments = (self._with_leaves(each, leaves) for each in expression.arguments)
            return replace(expression, arguments=tuple(arguments))
        return expression

    def _leaf_vector(self, expression: Expression) -> Vector:
        column = self.column(expression)
        if expression.type in _COMPUTED:
            return from_arrow(column, expression.type)
        # Such a column is only tested for NULL.
        valid = flat(column).is_valid().to_numpy(zero_copy_only=False)
        return Vector(np.zeros(self.count, np.bool_), valid)

    def _of_texts(self, call: Call) -> pa.Array:
        (text,) = _not_constant(call)
        texts = as_bytes(flat(self.column(text)))
        if pa.types.is_dictionary(texts.type):
            texts = texts.dictionary_decode()
        entry = FUNCTIONS[call.function]
        constants = [each.value if isinstance(each, Literal) else None for each in call.arguments]
        if call.function == "str_extract_regex" and isinstance(pattern := constants[1], bytes):
            coded = texts.dictionary_encode()
            return find_all(coded.dictionary, pattern).take(coded.indices)
        if not entry.is_high_only:
            place = call.arguments.index(text)

            def meaning(value: bytes) -> tuple[Any, Outcome]:
                given = [*constants[:place], value, *constants[place + 1 :]]
                return entry.evaluate(*given), Outcome.READ

            return _by_value(texts, call.type, meaning)[0]
        if call.function in ITEMS and len(texts):
            values, found = self._of_messages(call, text, texts)
        else:
            values, found = _of_payloads(call, texts)
        self.outcomes.setdefault(call.function, Counter()).update(found)
        return values

    def _of_messages(
        self, call: Call, text: Expression, payloads: pa.Array
    ) -> tuple[pa.Array, Counter[Outcome]]:
        """Return an item of the DNS messages in ``payloads``, the values of ``text``."""
        messages = self._messages.get(text)
        if messages is None:
            messages = self._messages[text] = DnsMessages(payloads.cast(pa.binary()))
        item = messages.item(call.function)
        values, found = item.values, Counter({Outcome.DAMAGED: item.damaged})
        if item.rest.any():
            rest = pa.array(item.rest)
            others, outcomes = _of_payloads(call, payloads.filter(rest))
            values = pc.replace_with_mask(values, rest, others)
            found.update(outcomes)
        return values, found


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _of_payloads(call: Call, payloads: pa.Array) -> tuple[pa.Array, Counter[Outcome]]:
    """Return what a function reads from each payload, and what came of reading them."""
    beginning = BEGINNINGS.get(call.function)
    foreign = 0
    if beginning is not None:
        begins = pc.match_substring_regex(payloads, beginning)
        foreign = pc.sum(pc.and_(pc.invert(begins), pc.not_equal(payloads, b""))).as_py() or 0
        payloads = pc.if_else(begins, payloads, pa.scalar(None, payloads.type))
    values, found = _by_value(payloads, call.type, lambda value: read(call.function, value))
    found[Outcome.FOREIGN] += foreign
    return values, found


def _by_value(
    texts: pa.Array, kind: GsqlType, ask: Callable[[bytes], tuple[Any, Outcome]]
) -> tuple[pa.Array, Counter[Outcome]]:
    """Return the value of a function for each text, and what came of reading the texts.

    NULL gives NULL.
    """
    coded = texts.dictionary_encode()
    answers = [ask(value) for value in coded.dictionary.to_pylist()]
    stored = pa.binary() if kind is GsqlType.STRING else arrow_type(kind)
    found = [value for value, _ in answers]
    if kind is GsqlType.IP:
        found = [None if value is None else value.to_bytes(16) for value in found]
    values = pa.array(found, stored).take(coded.indices)
    if all(outcome is Outcome.READ for _, outcome in answers):
        return values, Counter()
    rows = np.bincount(coded.indices.drop_null().to_numpy(), minlength=len(answers))
    outcomes: Counter[Outcome] = Counter()
    for (_, outcome), count in zip(answers, rows.tolist(), strict=True):
        outcomes[outcome] += count
    return values, outcomes
