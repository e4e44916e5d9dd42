"""What every live packet source promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gscope.capture.sources.base import SourceStats
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.split.kernel_filter import Condition


class LiveDevice(Protocol):
    """An interface that is captured live, by one thread or several.

    Attributes:
        name: of the interface.
    """

    name: str

    def narrow(self, condition: Condition) -> None:
        """Leave out packets that cannot fulfil ``condition``, where that costs nothing; before ``start``."""

    def start(self) -> None:
        """Let packets in; those that come before it are neither kept nor counted."""

    @property
    def failure(self) -> str:
        """Why no packet comes any more, as it seems for good; "" while there may be some."""

    @property
    def stats(self) -> SourceStats:
        """What the source and the kernel below it have counted by now."""

    def close(self) -> None:
        """Release everything; harmless when called twice."""


class LiveSource(LiveDevice, Protocol):
    """Packets of an interface as they come; for one thread, but for ``wake``."""

    def next_block(self, timeout_s: float) -> Block | None:
        """The next block; None if there was none for ``timeout_s`` seconds.

        A block is valid until it is released, in the order they came.

        Raises:
            CaptureError: the interface is gone for good.
        """

    def wake(self) -> None:
        """Make a ``next_block`` that waits now, or the next one that would, return None; from any thread."""

    def release(self, block: Block) -> None:
        """Give the memory of ``block`` back."""

    def is_idle(self) -> bool:
        """Whether there is nothing to hand out: a fact, looked up now, not a timeout.

        What arrived longer ago than the source may keep it to itself (its block retire time) was handed out.
        """
