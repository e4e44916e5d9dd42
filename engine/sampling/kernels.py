"""Kernels of sampling operators, run by Python for few tuples and compiled by numba for many."""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.engine.sampling.kernel_files import kernel_module
from gscope.engine.sampling.kernel_text import kernel_of
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.sampling.stateful import STATEFUL
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gscope.engine.sampling.kernel_text import Kernel
    from gscope.queries.expressions.expressions import Call
    from gscope.queries.plan.sampling_operator import Sampling

COMPILED_ROWS = 500_000
"""The tuples that Python folds before a kernel is compiled, which takes as long as that."""

_folded: Counter[str] = Counter()
"""The tuples that this process has folded so far, by the text of the kernel."""


class Folding:
    """The kernel of one sampling operator, ready to run.

    Args:
        sampling: the clauses of the operator.
        rows: the tuples of the step, which with those of steps before decide whether it is worth
            compiling.
    """

    def __init__(self, sampling: Sampling, rows: int) -> None:
        self.kernel: Kernel = _kernel(sampling)
        _folded[self.kernel.text] += rows
        is_worth = _folded[self.kernel.text] >= COMPILED_ROWS and not self.kernel.needs_python
        self._run = _compiled(self.kernel.text) if is_worth else _plain(self.kernel.text)

    @property
    def user_states(self) -> dict[str, Any]:
        """The classes of user code whose states it uses, by the name of the state."""
        entries = [STATEFUL[name] for name in self.kernel.user_functions]
        return {entry.state: entry.code for entry in entries}

    def __call__(self, arrays: Mapping[str, Any], objects: dict[tuple[int, str], Any]) -> int:
        """Run the kernel, and return the number of groups in ``arrays["answers"]``.

        Args:
            arrays: its arguments by name.
            objects: the states of user code by the place and the name of the state, which it adds
                to.
        """
        extra: dict[str, Any] = {}
        if self.kernel.needs_python:
            entries = {name: STATEFUL[name] for name in self.kernel.user_functions}
            extra = {
                "external": [meaning_of(call) for call in self.kernel.externals],
                "user": {name: entry.code.function(name) for name, entry in entries.items()},
                "codes": self.user_states,
                "objects": objects,
            }
        arguments = {**arrays, **extra}
        with np.errstate(all="ignore"):  # integers wrap
            return int(self._run(*(arguments[name] for name in self.kernel.parameters)))


@functools.lru_cache(64)
def _kernel(sampling: Sampling) -> Kernel:
    return kernel_of(sampling)


@functools.lru_cache(64)
def _plain(text: str) -> Callable[..., int]:
    """Return the kernel as a function that Python runs."""
    return _loaded(text)


def _loaded(text: str) -> Callable[..., int]:
    """Return the kernel in a module of its own, without a file."""
    space: dict[str, Any] = {"__name__": "gscope_sampling_kernel"}
    exec(compile(text, "<sampling kernel>", "exec"), space)  # our own text
    run: Callable[..., int] = space["fold"]
    return run


@functools.lru_cache(64)
def _compiled(text: str) -> Callable[..., int]:
    """Return the kernel compiled by numba when it is first called; by Python if numba cannot."""
    chosen: list[Callable[..., int]] = []

    def run(*arguments: Any) -> int:
        if not chosen:
            chosen.append(_first_compiled(text, arguments) or _plain(text))
        return chosen[0](*arguments)

    return run


def _first_compiled(text: str, arguments: tuple[Any, ...]) -> Callable[..., int] | None:
    from gscope.engine.sampling.jit import compiled

    kept = kernel_module(text)
    if kept is None:
        return compiled(_loaded(text), arguments)
    module, folder = kept
    return compiled(module.fold, arguments, folder)


_PLAIN: Mapping[GsqlType, Callable[[Any], Any]] = {GsqlType.BOOL: bool, GsqlType.FLOAT: float}


def meaning_of(call: Call) -> Callable[..., Any]:
    """Return what a catalog function computes, as a function of numpy scalars."""
    entry = FUNCTIONS[call.function]
    casts = [_PLAIN.get(argument.type, int) for argument in call.arguments]

    def evaluate(*values: Any) -> Any:
        plain = [None if v is None else cast(v) for cast, v in zip(casts, values, strict=True)]
        if entry.is_strict and None in plain:
            return None
        return entry.evaluate(*plain)

    return evaluate
