"""Kernels of sampling operators: their text on disk, compiled by numba or run by Python.

Compiled kernels are kept beside their text, in a folder named by a hash of the text; the text
includes every function that it calls. Only files of the user's own folder are loaded.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import logging
import os
import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.engine.sampling.kernel_text import kernel_of
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.sampling.stateful import STATEFUL
from gscope.queries.expressions.types import GsqlType
from gscope.queries.ownership import ensure_private_folder
from gscope.queries.run_folder.whole_file import replace_file
from gscope.queries.user_cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gscope.engine.sampling.kernel_text import Kernel
    from gscope.queries.expressions.expressions import Call
    from gscope.queries.plan.sampling_operator import Sampling

_log = logging.getLogger(__name__)

COMPILED_ROWS = 500_000
"""The tuples that Python folds before a kernel is compiled, which takes as long as that."""

_MOST_KEPT = 100
"""The kernels that are kept on disk, those that were used last."""

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
                "external": [_external(call) for call in self.kernel.externals],
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
    space: dict[str, Any] = {"__name__": "gscope_sampling_kernel"}
    exec(compile(text, "<sampling kernel>", "exec"), space)  # our own text
    run: Callable[..., int] = space["fold"]
    return run


@functools.lru_cache(64)
def _compiled(text: str) -> Callable[..., int]:
    """Return the kernel compiled by numba, from the folder of the user if it is there."""
    from gscope.engine.sampling.jit import compiled

    folder = _folder(text)
    if folder is None:
        return compiled(_plain(text), is_kept=False)
    path = folder / "kernel.py"
    if not path.exists():
        replace_file(path, text)
    spec = importlib.util.spec_from_file_location(f"gscope_sampling_{folder.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # numba looks the module of a stored kernel up by its name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return compiled(module.fold, is_kept=True)


def _folder(text: str) -> Path | None:
    """Return the folder of a kernel, which only the user can write to; None if there is none."""
    cache = cache_folder()
    if cache is None:
        return None
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        folder = ensure_private_folder(cache / "sampling" / name)
        os.utime(folder)
        kept = sorted(folder.parent.iterdir(), key=lambda each: -each.stat().st_mtime)
    except OSError as error:
        _log.info("cannot keep kernels of sampling operators: %s", error)
        return None
    for old in kept[_MOST_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


_PLAIN: Mapping[GsqlType, Callable[[Any], Any]] = {GsqlType.BOOL: bool, GsqlType.FLOAT: float}


def _external(call: Call) -> Callable[..., Any]:
    """Return what a catalog function computes, as a function of numpy scalars."""
    entry = FUNCTIONS[call.function]
    casts = [_PLAIN.get(argument.type, int) for argument in call.arguments]

    def evaluate(*values: Any) -> Any:
        plain = [None if v is None else cast(v) for cast, v in zip(casts, values, strict=True)]
        if entry.is_strict and None in plain:
            return None
        return entry.evaluate(*plain)

    return evaluate
