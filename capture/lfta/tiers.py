"""Two tiers of a kernel: unoptimised code for a start without delay, then optimised code.

Both are machine code of the same LLVM assembly, so they give the same rows and work on the same
tables: one replaces the other between two calls, and no group has to be handed over. Unoptimised
code is made in a twentieth of the time. The optimiser starts once a kernel has processed enough
packets for it to pay, in a thread of low priority: a small capture never waits for it. A live
capture starts it at once.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.capture.kernels.native.machine_code import Optimization
from gscope.capture.lfta.native_kernel import KernelCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.lfta.native_kernel import KernelFunctions, KernelSource

_log = logging.getLogger(__name__)

OPTIMIZE_AFTER = 250_000
"""Packets after which a kernel is optimised. Unoptimised code takes them in a tenth of a second,
about a quarter of what the optimiser takes."""
_NICE = 10


class KernelTiers:
    """The functions of a kernel, which faster ones may replace at any moment.

    Args:
        functions: those to begin with.
        optimized: compiles faster ones; None if there are none.
    """

    def __init__(
        self,
        functions: KernelFunctions,
        optimized: Callable[[], KernelFunctions] | None = None,
    ) -> None:
        self.functions = functions
        # A call into the first code may still be running when it is replaced.
        self._first = functions
        self._optimized = optimized
        self._packets = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def count(self, packets: int) -> None:
        """Count packets that the kernel has processed, in one of its threads."""
        if self._optimized is None:
            return
        # Threads may lose each other's counts; the optimiser then starts a little later.
        self._packets += packets
        if self._packets >= OPTIMIZE_AFTER:
            self.optimize()

    def optimize(self) -> None:
        """Start the optimiser now, unless it was started before or there is nothing to optimise."""
        with self._lock:
            optimized, self._optimized = self._optimized, None
            if optimized is not None:
                # No daemon thread: Python waits for it at its end, because LLVM aborts a
                # process that unloads it while it works.
                self._thread = threading.Thread(
                    target=self._optimize, args=(optimized,), name="optimise kernel"
                )
                self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Wait until an optimiser that was started has ended, for ``timeout_s`` at most."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _optimize(self, optimized: Callable[[], KernelFunctions]) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        try:
            self.functions = optimized()
        except Exception:
            # The capture goes on with what it has: rows do not depend on it.
            _log.warning("cannot optimise the kernel, which stays slower", exc_info=True)


def kernel_tiers(source: KernelSource, *, is_quick: bool) -> KernelTiers:
    """Load a kernel, or compile it: unoptimised if ``is_quick``, to be optimised when it pays.

    Modules that an earlier process has optimised before it ended stay optimised.

    Raises:
        KernelSyntaxError: the source contains what the compiler does not support.
    """
    code = KernelCode(source)
    if not is_quick or code.is_compiled(Optimization.FULL):
        return KernelTiers(code.load())
    return KernelTiers(code.load_best(), code.load)
