"""The inputs of a replay: opened before the replay begins, interrupted and closed together."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Self

from gscope.capture.replay.replay_stop import ReplayStop
from gscope.capture.sources.empty import NoPackets
from gscope.capture.sources.files.backward_steps import BackwardSteps
from gscope.capture.sources.files.file import DEFAULT_BLOCK_BYTES
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.files.selected import SelectedSource, first_packets
from gscope.capture.sources.read_ahead import RingSource
from gscope.errors import CaptureError, NotACaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.capture.settings import CaptureSettings, InterfaceSettings
    from gscope.capture.sources.base import BlockSource, CaptureSource

READ_AHEAD_BYTES = 4 << 20
"""Least size of a file that a thread reads ahead: a smaller one is read before it has started."""


class OpenInputs:
    """The open source of each interface; a context manager.

    A file that is not a capture, among others that are, becomes an interface without packets.

    Args:
        settings: the interfaces with their files, filters and the limit of packets.
        stop: ends the pass that counts the packets of several interfaces for that limit; None if
            nothing does. It interrupts the open inputs only while a caller lets it watch them.

    Attributes:
        refused: for inputs that are not captures, by interface, the reason.

    Raises:
        CaptureError: inputs cannot be opened, or none is a capture. The message has one line for
            each input. No input is left open.
    """

    def __init__(self, settings: CaptureSettings, stop: ReplayStop | None = None) -> None:
        self._sources: dict[str, CaptureSource] = {}
        self._files: list[BlockSource] = []
        self._steps: BackwardSteps | None = None
        self.refused: dict[str, str] = {}
        problems: list[str] = []
        shares = _shares(settings, stop or ReplayStop())
        for interface in settings.interfaces:
            try:
                self._sources[interface.name] = self._open(
                    interface, settings, shares.get(interface.name, settings.packets)
                )
            except NotACaptureError as error:
                self._sources[interface.name] = NoPackets(interface.files[0])
                self.refused[interface.name] = str(error)
            except CaptureError as error:
                problems.append(str(error))
        if problems or len(self.refused) == len(settings.interfaces):
            self.close()
            raise CaptureError("\n".join([*problems, *self.refused.values()]))
        walked = (i for i in settings.interfaces if i.finds_skew and i.name not in self.refused)
        self._steps = BackwardSteps({each.name: each.files for each in walked})

    def __getitem__(self, interface: str) -> CaptureSource:
        return self._sources[interface]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def skew_ns(self, interface: InterfaceSettings) -> int:
        """Return the skew of ``interface``: its setting, or more so that no packet is late.

        If its captures are walked over to find that skew, wait until the walk has ended.
        """
        deepest_ns = None if self._steps is None else self._steps.deepest_ns(interface.name)
        return max(interface.skew_ns, deepest_ns or 0)

    def knows_skew(self, interface: InterfaceSettings) -> bool:
        """Return whether ``skew_ns`` does not wait, or packets have to wait as well."""
        return self._steps is None or not self._steps.is_under_way(interface.name)

    def interrupt(self) -> None:
        """Make reads that wait for input end soon, as if the input ended; for any thread."""
        if self._steps is not None:
            self._steps.stop()
        for file in self._files:
            file.interrupt()

    def close(self) -> None:
        """Close all sources; may be called twice."""
        if self._steps is not None:
            self._steps.close()
        for source in self._sources.values():
            source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _open(
        self, interface: InterfaceSettings, settings: CaptureSettings, most: int | None
    ) -> CaptureSource:
        source = _selected(self._open_whole(interface, settings), interface)
        return source if most is None else SelectedSource(source, {}, most)

    def _open_whole(self, interface: InterfaceSettings, settings: CaptureSettings) -> CaptureSource:
        file = open_source(
            *interface.files,
            block_bytes=settings.block_bytes or DEFAULT_BLOCK_BYTES,
            no_flow_records=_no_flow_records(interface),
        )
        self._files.append(file)
        is_large = file.size_bytes is None or file.size_bytes >= READ_AHEAD_BYTES
        if not settings.read_ahead or not is_large:
            return file
        ring = RingSource(file)
        ring.start()
        return ring


def _selected(source: CaptureSource, interface: InterfaceSettings) -> CaptureSource:
    """Return what queries read of ``source``.

    That is the packets that pass the filter, or their flow records.
    """
    if interface.filters:
        source = SelectedSource(source, _programs(interface), None)
    if not interface.reads_flows:
        return source
    from gscope.capture.sources.flows.source import FlowSource

    return FlowSource(source)


def _no_flow_records(interface: InterfaceSettings) -> str:
    """Return why files of flow records cannot be read on ``interface``; "" if they can."""
    if not interface.reads_flows:
        return "whose flow records are read by queries FROM FLOW only"
    if interface.filters:
        return "which has no packets for the packet filter (-f) to select: use WHERE"
    return ""


def _programs(interface: InterfaceSettings) -> dict[int, list[tuple[int, ...]]]:
    """Return the packet filter of ``interface`` by link type; {} if it has none."""
    return {each.linktype: each.rows() for each in interface.filters}


class _CountedFiles:
    """The files of a counting pass, which a stop interrupts."""

    def __init__(self, files: Sequence[BlockSource]) -> None:
        self._files = files

    def interrupt(self) -> None:
        """Make the pass end soon, as if the files ended; for any thread."""
        for file in self._files:
            file.interrupt()


def _shares(settings: CaptureSettings, stop: ReplayStop) -> dict[str, int]:
    """Return how many packets to read of each interface; {} if one alone has the limit, or none.

    Reads the captures of several interfaces as far as the limit reaches, or until ``stop`` ends the
    pass; then the shares are smaller. Inputs that cannot be opened are left to the caller to
    report.
    """
    if settings.packets is None or len(settings.interfaces) < 2:
        return {}
    with ExitStack() as opened:
        files: list[BlockSource] = []
        sources: dict[str, CaptureSource] = {}
        for interface in settings.interfaces:
            with suppress(CaptureError):
                file = open_source(*interface.files, no_flow_records=_no_flow_records(interface))
                opened.callback(file.close)
                files.append(file)
                sources[interface.name] = _selected(file, interface)
        with stop.watching(_CountedFiles(files)):
            counts = first_packets(list(sources.values()), settings.packets)
    return dict(zip(sources, counts, strict=True))
