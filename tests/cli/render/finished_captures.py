"""Summaries of captures, for tests of what is reported of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gscope.queries.streams.process_events import CaptureFinished


def finished(*interfaces: dict[str, Any], **changes: Any) -> CaptureFinished:
    """Return the summary of a capture with the counters of its interfaces and other fields."""
    return replace(CaptureFinished(interfaces, {}, {}, {}, is_stopped=False), **changes)
