"""Whether the log of a capture is thinned when it is nearly full, and by which rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.log.budget import DISK_RESERVE_BYTES
from gscope.capture.log.thinning.limits import StreamLimits
from gscope.capture.log.thinning.thinner import Thinner, ThinningRules
from gscope.capture.shedding.settings import SheddingMode
from gscope.queries.plan.sampling.keyed_hash import HashKey
from gscope.queries.plan.sampling.moving_samples import moving_samples
from gscope.queries.plan.sampling.thinnable import thinnable_samples

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gscope.capture.log.batches import StreamSpec
    from gscope.capture.log.log import StreamLog
    from gscope.capture.settings import CaptureSettings
    from gscope.queries.plan.program import Program


def use_thinning(
    log: StreamLog,
    folder: Path,
    program: Program,
    settings: CaptureSettings,
    specs: Iterable[StreamSpec],
) -> None:
    """Let a log be thinned, if the rates of a live capture follow its load.

    Only streams that the job alone reads are thinned: other readers do not state what they have
    answered.

    Raises:
        StreamError: the limits that an earlier daemon has left are unreadable or damaged.
    """
    rules = _rules(program, settings, {spec.name: spec for spec in specs})
    if rules is not None:
        log.use_thinning(Thinner(log, rules, StreamLimits(folder), is_new=log.is_empty))


def _rules(
    program: Program, settings: CaptureSettings, specs: dict[str, StreamSpec]
) -> ThinningRules | None:
    shedding = settings.shedding
    if shedding is None or shedding.mode is not SheddingMode.AUTO or not settings.is_live:
        return None
    if settings.relay is not None or settings.listener is not None:
        return None
    readers = {
        stream: [each.name for each in settings.consumers if stream in (each.streams or (stream,))]
        for stream in specs
    }
    alone = {stream for stream, names in readers.items() if len(names) == 1}
    samples = thinnable_samples(program, moving_samples(program)[0], alone)
    names = {readers[stream][0] for sample in samples for stream in sample.rows}
    if len(names) != 1:
        return None
    (reader,) = names
    return ThinningRules(
        samples,
        specs,
        HashKey.of_seed(shedding.seed),
        shedding.min_rate,
        settings.log_bytes,
        DISK_RESERVE_BYTES,
        reader,
    )
