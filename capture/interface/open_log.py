"""Opens the stream log of a capture with the streams that its program writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.log.batches import BatchLimits, StreamSpec
from gscope.capture.log.budget import AdmitAll, ShedOldest, WaitForRoom
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.log.budget import Budget
    from gscope.capture.settings import CaptureSettings
    from gscope.queries.plan.program import Program

MAX_CONSUMERS = 8
"""How many readers of other hosts may register; the log keeps what one of them still needs."""


def open_log(folder: Path, program: Program, settings: CaptureSettings) -> StreamLog:
    """Open the stream log of a run of ``program`` in ``folder``.

    When its disk budget is used up, the log of a replay waits for readers; that of a live capture
    sheds its oldest batches, after it was thinned if rates follow the load; a relay takes nothing
    from its inputs.

    Raises:
        UsageError: an interface of the program has no input, so its streams would never end.
        StreamError: the log is unusable, damaged or in use.
    """
    named = {interface.name for interface in settings.interfaces}
    missing = sorted({name for lfta in program.lftas for name in lfta.interfaces} - named)
    if missing:
        message = f"the program reads interfaces without input: {', '.join(missing)}"
        raise UsageError(message)
    if settings.is_live and any(lfta.partitioning is not None for lfta in program.lftas):
        from gscope.capture.kernels.row_partitions import load_kernels

        # Packets would be lost if the first large segment had to wait for them.
        load_kernels()
    latent = {interface.name for interface in settings.interfaces if interface.is_latent}
    specs = [
        StreamSpec.from_lfta(lfta, interface, is_latent=interface in latent)
        for lfta in program.lftas
        for interface in lfta.interfaces
    ]
    specs += [
        StreamSpec.from_lfta(each, name) for each in program.answers for name in each.interfaces
    ]
    log = StreamLog(
        folder,
        specs,
        consumers=[Consumer(consumer.name, consumer.streams) for consumer in settings.consumers],
        limits=BatchLimits(settings.batch_rows, settings.batch_bytes, settings.open_bytes),
        most_registered=0 if settings.listener is None else MAX_CONSUMERS,
        served=tuple(stream for each in program.served or () for stream in each.streams),
        budget=_budget(settings),
    )
    if settings.is_live and settings.shedding is not None:
        from gscope.capture.interface.log_thinning import use_thinning

        try:
            use_thinning(log, folder, program, settings, specs)
        except BaseException:
            log.close()
            raise
    return log


def _budget(settings: CaptureSettings) -> Budget:
    if settings.relay is not None:
        return AdmitAll(settings.log_bytes)
    return (ShedOldest if settings.is_live else WaitForRoom)(settings.log_bytes)
