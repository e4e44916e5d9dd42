"""Who waits for whom: the streams that hold an operator's watermark down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.watermarks.bounds import ENDED, NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.operators.base import Operator


def held_by(operators: Mapping[str, Operator], query: str) -> tuple[str, ...]:
    """The streams of the log whose punctuation is the least of all that operator ``query`` needs.

    They are found behind upstream operators too. An operator that has everything, or that takes rows as they
    come, waits for none.
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
    """What holds the port ``name``: itself if it is a stream, otherwise what the upstream operator waits for."""
    if name not in operators:
        return (name,)
    held = held_by(operators, name)
    if held:
        return held
    # Without an epoch of its own it passes the punctuation of its inputs on, all of one schema.
    ports = [p for side in operators[name].sides for p in side.ports.values() if not p.has_ended]
    columns = {column: None for port in ports for column in port.bounds}
    told = [port.bounds.get(next(iter(columns), ""), NOTHING) for port in ports]
    least = [port.name for port, bound in zip(ports, told, strict=True) if bound == min(told)]
    return tuple(dict.fromkeys(stream for each in least for stream in _streams(operators, each)))
