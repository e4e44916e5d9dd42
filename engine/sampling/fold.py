"""The fold of whole windows: tuples in order and the states before become answers and states.

A table of states has the columns ``k0``, ``k1`` … (the keys of a supergroup) and ``s0``, ``s1`` …
(the numbers of its states), one row for each supergroup of the last window that had tuples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.groups import number_groups
from gscope.engine.running.vectors import dtype_of
from gscope.engine.sampling.aggregate_text import aggregate_texts
from gscope.engine.sampling.answers import answers_of
from gscope.engine.sampling.kernels import Folding
from gscope.engine.sampling.open_window import OpenWindow
from gscope.engine.sampling.random_numbers import key_hashes, random_numbers
from gscope.engine.sampling.superaggregate_text import superaggregate_texts
from gscope.engine.sampling.values import SampleRows, numbered
from gscope.queries.catalog.sampling.superaggregates import COUNT_DISTINCT, KTH_SMALLEST
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling_operator import RANDOM
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from gscope.queries.plan.sampling_operator import SampleNode

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Folded:
    """What a fold returns besides its answers.

    Attributes:
        states: the table of states after the last window; None if the operator has no states.
        left_out: the tuples of new groups that the bound on groups has left out.
        wrapped: the sums of integers that have exceeded 64 bits.
    """

    states: pa.Table | None
    left_out: int = 0
    wrapped: int = 0


def fold(
    node: SampleNode,
    rows: SampleRows,
    states: pa.Table | None,
    write: Callable[[pa.Table], None],
) -> Folded:
    """Fold the windows of a step.

    Args:
        node: the operator.
        rows: all tuples of the step, in order.
        states: what the fold of the windows before left; None at the start.
        write: receives the answers, with the columns of the node's schema.
    """
    return fold_parts(node, [(rows, windows_of(rows))], states, write)


def fold_parts(
    node: SampleNode,
    parts: Iterable[tuple[SampleRows, Array]],
    states: pa.Table | None,
    write: Callable[[pa.Table], None],
) -> Folded:
    """Fold the windows of a step whose tuples come in parts, one held in memory at a time.

    Args:
        node: the operator.
        parts: tuples of some supergroups, in order, and the windows in which any supergroup has
            tuples in the part, ascending. A window may go on in the next part.
        states: what the fold of the windows before left; None at the start.
        write: receives the answers, with the columns of the node's schema.
    """
    left_out = wrapped = 0
    opened: OpenWindow | None = None
    begun: Array = np.zeros(0, np.int64)
    waiting = iter(parts)
    part = next(waiting, None)
    while part is not None:
        (rows, windows), part = part, next(waiting, None)
        windows = np.union1d(begun, windows) if len(begun) else windows
        if opened is not None:
            rows = SampleRows(node, pa.concat_tables([opened.rows, rows.table]))
        if rows.count:
            folding = _Fold(node, rows, states, windows, opened)
            folding.run(write, is_last=part is None)
            left_out, wrapped = left_out + folding.left_out, wrapped + folding.wrapped
            states, opened = folding.states_after(is_last=part is None), folding.opened
        elif len(windows) > 1 or (part is None and len(windows)):
            states = None
        begun = windows[-1:]
    return Folded(states, left_out, wrapped)


def windows_of(rows: SampleRows) -> Array:
    """Return the windows that have tuples, ascending."""
    found: Array = np.unique(rows.vector(rows.node.epoch_expression).values)
    return found


class _Fold:
    """The fold of one part of a step.

    Args:
        node: the operator.
        rows: the tuples, those of ``opened`` first.
        states: the states of the window before the first.
        windows: the windows, the open one first.
        opened: what the part before has left of its last window; None without a part before, or if
            that had no supergroup of this fold.
    """

    def __init__(
        self,
        node: SampleNode,
        rows: SampleRows,
        states: pa.Table | None,
        windows: Array,
        opened: OpenWindow | None,
    ) -> None:
        self._node = node
        self._sampling = node.sampling
        self._supers, self._selected = node.sampling.superaggregates, node.sampling.selected
        self._rows = rows
        self._before_open = opened
        self._folding = Folding(node.sampling, rows.count)
        self._states = states if states is not None and states.num_rows else None
        self.opened: OpenWindow | None = None
        self.left_out = self.wrapped = 0
        self._supergroups(windows)
        self._objects = self._restored()

    def _supergroups(self, window_starts: Array) -> None:
        """Number windows, supergroups and groups, and put the tuples of a supergroup together."""
        node, rows = self._node, self._rows
        epochs = rows.vector(node.epoch_expression).values
        windows = np.searchsorted(window_starts, epochs).astype(np.int64)
        keys = rows.supergroup_keys()
        held = 0
        if self._states is not None:
            held = self._states.num_rows
            before = self._states.select(keys.column_names).cast(keys.schema)
            keys = pa.concat_tables([before, keys])
        places, count = number_groups(keys.columns, keys.num_rows)
        count = max(count, 1)
        codes = (windows + 1) * count + places[held:]
        order = np.argsort(codes, kind="stable")
        self._order = order
        supers, self._first_row, inverse = np.unique(
            codes[order], return_index=True, return_inverse=True
        )
        self._starts = np.append(self._first_row, len(order)).astype(np.int64)
        self._of_super = inverse.astype(np.int64)
        resumed = 0 if self._before_open is None else len(self._before_open.seen)
        self._base = held + resumed
        # A supergroup follows the one with its keys in the window before.
        known = np.concatenate([places[:held], supers])
        at_row = np.concatenate([np.arange(held), self._base + np.arange(len(supers))])
        wanted = supers - count
        by_code = np.argsort(known, kind="stable")
        at = np.minimum(np.searchsorted(known[by_code], wanted), len(known) - 1)
        found = known[by_code][at] == wanted
        self._before = np.where(found, at_row[by_code][at], -1).astype(np.int64)
        self._held = held
        self._window = supers // count - 1
        self._last_window = len(window_starts) - 1
        self._skip = np.zeros(len(supers), np.int64)
        self._seen = np.zeros(len(supers), np.int64)
        self._resumed = np.zeros(len(supers), np.bool_)
        if self._before_open is not None:
            opened = self._before_open
            carried = order < opened.rows.num_rows
            np.add.at(self._skip, self._of_super[carried], 1)
            self._resumed = self._skip > 0
            owners = opened.owners[order[self._first_row[self._resumed]]]
            self._before[self._resumed] = held + owners
            self._seen[self._resumed] = opened.seen[owners]
            self._owners = owners
        self._keys = rows.keys(tuple(key.name for key in node.keys))
        self._groups, self._group_count = number_groups(self._keys.columns, rows.count)

    def run(self, write: Callable[[pa.Table], None], *, is_last: bool) -> None:
        """Fold; ``is_last`` ends the last window."""
        arrays = self._arrays()
        arrays["ends"][:] = is_last | (self._window < self._last_window)
        answered = self._folding(arrays, self._objects)
        groups = arrays["answers"][:answered]
        if answered:
            rows = pa.array(self._order[arrays["first"][groups]])
            keys = self._keys.take(rows).combine_chunks()
            write(answers_of(self._rows, keys, arrays, groups))
        self._state = arrays["state"]
        if not is_last:
            self._leave_open(arrays)
        self.left_out, self.wrapped = int(arrays["left_out"][0]), int(arrays["wrapped"][0])

    def states_after(self, *, is_last: bool) -> pa.Table | None:
        """Return the states of the last window that has ended."""
        if is_last:
            return self._saved(np.flatnonzero(self._window == self._last_window))
        if self._last_window == 0:
            return self._states
        return self._saved(np.flatnonzero(self._window == self._last_window - 1))

    def _leave_open(self, arrays: dict[str, Any]) -> None:
        """Keep the supergroups of the last window for the next part."""
        supers = np.flatnonzero(self._window == self._last_window)
        if not len(supers):
            return
        ends = arrays["lived_until"][supers]
        starts = np.append(arrays["lived_until"][supers[0] - 1] if supers[0] else 0, ends[:-1])
        # One row for the supergroup, then those of its live groups.
        places, groups, owners = [], [], []
        for number, (one, start, end) in enumerate(
            zip(supers.tolist(), starts.tolist(), ends.tolist(), strict=True)
        ):
            living = arrays["living"][start:end]
            places += [self._first_row[one : one + 1], arrays["first"][living]]
            groups += [np.zeros(1, np.int64), living]
            owners.append(np.full(1 + len(living), number))
        place, group = np.concatenate(places), np.concatenate(groups)
        texts = superaggregate_texts(self._sampling)
        names = ["marks", *(n for each in aggregate_texts(self._sampling) for n in each.arrays())]
        names += [name for each in texts for name in each.arrays_by_group()]
        sums = [name for each in texts for name in each.arrays_by_supergroup()]
        sizes = np.diff(self._starts)[supers] - self._skip[supers]
        self.opened = OpenWindow(
            rows=self._rows.table.take(pa.array(self._order[place])),
            owners=np.concatenate(owners),
            by_group={name: arrays[name][group] for name in names},
            by_supergroup={name: arrays[name][supers] for name in sums},
            random=arrays["v_random"][place] if self._uses_random() else None,
            seen=self._seen[supers] + sizes,
            states=self._state[self._base + supers],
            objects={
                (number, name): self._objects[self._base + one, name]
                for number, one in enumerate(supers.tolist())
                for name in self._folding.user_states
            },
        )

    def _restored(self) -> dict[tuple[int, str], Any]:
        """Return the states of user code of the window before."""
        found: dict[tuple[int, str], Any] = {}
        if self._states is not None:
            for number, (state, code) in enumerate(self._folding.user_states.items()):
                for place, saved in enumerate(self._states[f"u{number}"].to_pylist()):
                    found[place, state] = code.restore(saved)
        if self._before_open is not None:
            for (number, state), kept in self._before_open.objects.items():
                found[self._held + number, state] = kept
        return found

    def _arrays(self) -> dict[str, Any]:
        """Return the arguments of the kernel."""
        groups, supers = self._group_count, len(self._before)
        slots = self._folding.kernel.slots
        state = np.zeros((self._base + supers, slots))
        if self._states is not None:
            for number in range(slots):
                state[: self._held, number] = self._states[f"s{number}"].to_numpy()
        if self._before_open is not None:
            state[self._held : self._base] = self._before_open.states
        arrays: dict[str, Any] = {
            "starts": self._starts,
            "before": self._before,
            "base": self._base,
            "state": state,
            "group": np.ascontiguousarray(self._groups[self._order]),
            "alive": np.zeros(groups, np.bool_),
            "first": np.zeros(groups, np.int64),
            "following": np.zeros(groups, np.int64),
            "previous": np.zeros(groups, np.int64),
            "marks": np.zeros(groups),
            "max_groups": self._sampling.max_groups,
            "left_out": np.zeros(1, np.int64),
            "wrapped": np.zeros(1, np.int64),
            "answers": np.zeros(groups, np.int64),
            "resumed": self._resumed,
            "skip": self._skip,
            "ends": np.ones(supers, np.bool_),
            "living": np.zeros(groups, np.int64),
            "lived_until": np.zeros(supers, np.int64),
        }
        self._add_values(arrays)
        self._add_aggregates(arrays)
        self._add_superaggregates(arrays)
        for number, call in enumerate(self._selected):
            arrays[f"sel{number}"] = np.zeros(groups, dtype_of(call.type))
            arrays[f"seln{number}"] = np.zeros(groups, np.bool_)
        if self._before_open is not None:
            self._resume(arrays, self._before_open)
        return arrays

    def _resume(self, arrays: dict[str, Any], opened: OpenWindow) -> None:
        """Put in place what the part before has left."""
        is_group = np.diff(opened.owners, prepend=-1) == 0
        rows = np.flatnonzero(is_group)
        groups = self._groups[rows]
        for name, values in opened.by_group.items():
            arrays[name][groups] = values[rows]
        for name, values in opened.by_supergroup.items():
            arrays[name][self._resumed] = values[self._owners]

    def _add_values(self, arrays: dict[str, Any]) -> None:
        for value in self._sampling.values:
            coded = numbered(self._rows, value.expression)
            arrays[f"v_{value.name[1:]}"] = np.ascontiguousarray(coded.vector.values[self._order])
            arrays[f"n_{value.name[1:]}"] = np.ascontiguousarray(coded.vector.valid[self._order])
        arrays["v_random"] = self._random() if self._uses_random() else np.zeros(0, np.int64)
        arrays["n_random"] = np.ones(len(arrays["v_random"]), np.bool_)

    def _uses_random(self) -> bool:
        arguments = (each.argument for each in self._sampling.superaggregates)
        return any(argument is not None and argument.name == RANDOM for argument in arguments)

    def _random(self) -> Array:
        """Return a number of 63 bits for each tuple: a hash of its place in its supergroup."""
        node = self._node
        first = pa.array(self._order[self._first_row])
        names = (node.epoch, *self._sampling.supergroup)
        keys = self._rows.keys(names).take(first)
        hashed = key_hashes(keys, f"{self._sampling.seed}|{node.query}|")
        place = (
            np.arange(len(self._order))
            - (self._starts[:-1] + self._skip - self._seen)[self._of_super]
        )
        numbers = random_numbers(hashed[self._of_super], place)
        if self._before_open is not None and self._before_open.random is not None:
            carried = self._order < len(self._before_open.random)
            numbers[carried] = self._before_open.random[self._order[carried]]
        return numbers

    def _add_aggregates(self, arrays: dict[str, Any]) -> None:
        for number, aggregate in enumerate(self._sampling.aggregates):
            is_float = aggregate.type is GsqlType.FLOAT and aggregate.function != "count"
            kind = np.float64 if is_float else np.int64
            arrays[f"a{number}"] = np.zeros(self._group_count, kind)
            arrays[f"b{number}"] = np.zeros(self._group_count, np.bool_)
            arrays[f"c{number}"] = np.zeros(self._group_count, np.int64)

    def _add_superaggregates(self, arrays: dict[str, Any]) -> None:
        groups, supers = self._group_count, len(self._before)
        for number, each in enumerate(self._supers):
            kind = dtype_of(each.type)
            arrays[f"out{number}"] = np.zeros(groups, kind)
            arrays[f"outn{number}"] = np.zeros(groups, np.bool_)
            arrays[f"kept{number}"] = np.zeros(supers, kind)
            arrays[f"keptw{number}"] = np.zeros(supers, np.int64)
            arrays[f"keptx{number}"] = np.zeros(supers, np.int64)
            if each.function == KTH_SMALLEST:
                arrays[f"p{number}"] = np.zeros(each.rank, kind)
            elif each.function == COUNT_DISTINCT and each.argument is not None:
                name = each.argument.name[1:]
                values, valid = arrays[f"v_{name}"], arrays[f"n_{name}"]
                found, codes = np.unique(values, return_inverse=True)
                arrays[f"p{number}"] = np.zeros(len(found), np.int64)
                arrays[f"q{number}"] = np.where(valid, codes, -1).astype(np.int64)
            else:
                is_extreme = each.function in ("max", "min")
                arrays[f"p{number}"] = np.zeros(groups, kind)
                arrays[f"q{number}"] = np.zeros(groups, np.bool_ if is_extreme else np.int64)
                arrays[f"r{number}"] = np.zeros(groups, np.int64)

    def _saved(self, supers: Array) -> pa.Table | None:
        """Return the states of some supergroups."""
        if not self._folding.kernel.states and not self._folding.user_states:
            return None
        rows = self._order[self._first_row[supers]]
        table = self._rows.supergroup_keys().take(pa.array(rows))
        places = self._base + supers
        for number in range(self._state.shape[1]):
            table = table.append_column(f"s{number}", pa.array(self._state[places, number]))
        for number, (name, code) in enumerate(self._folding.user_states.items()):
            saved = [code.save(self._objects[place, name]) for place in places.tolist()]
            table = table.append_column(f"u{number}", pa.array(saved, pa.string()))
        return table
