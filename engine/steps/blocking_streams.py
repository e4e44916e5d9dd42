"""Blocking streams: those that hold an operator's watermark down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.watermarks.bounds import ENDED, NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.operators.base import Operator


def held_by(operators: Mapping[str, Operator], query: str) -> tuple[str, ...]:
    """Return the streams of the log with the least punctuation of all that ``query`` needs.

    The search goes through upstream operators. An operator whose inputs are complete, or that reads
    rows as they arrive, waits for no stream.
    """
    bounds = [
        (side.port_bound(port), name)
        for side in operators[query].sides
        if side.epoch is not None
        for name, port in side.ports.items()
    ]
    least = min((bound for bound, _ in bounds), default=ENDED)
    if least == ENDED:
        return ()
    streams: dict[str, None] = {}
    for bound, name in bounds:
        if bound == least:
            streams.update(dict.fromkeys(_streams(operators, name)))
    return tuple(streams)


def _streams(operators: Mapping[str, Operator], name: str) -> tuple[str, ...]:
    """Return the streams that a port waits for: its own, or those of its upstream operator."""
    if name not in operators:
        return (name,)
    held = held_by(operators, name)
    if held:
        return held
    # An operator without an epoch forwards the punctuation of its inputs, which have one schema.
    ports = [p for side in operators[name].sides for p in side.ports.values() if not p.has_ended]
    columns = {column: None for port in ports for column in port.bounds}
    bounds = [port.bounds.get(next(iter(columns), ""), NOTHING) for port in ports]
    least = [port.name for port, bound in zip(ports, bounds, strict=True) if bound == min(bounds)]
    return tuple(dict.fromkeys(stream for each in least for stream in _streams(operators, each)))
