"""Code that marks a packet that an LFTA accepts, for the file of saved packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.state import LftaState

if TYPE_CHECKING:
    from gscope.capture.lfta.codegen.scope import Scope


def mark_packet(scope: Scope, bit: int) -> None:
    """Emit code that sets a bit in the word of packet ``p``."""
    at = f"s[{LftaState.MARKS}] + 8 * p"
    scope.emit(f"st64({at}, ld64({at}) | {1 << bit})")
