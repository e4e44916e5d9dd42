from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest
from tests.capture.sources.af_packet.network import DEVICE, own_network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.capture.sources.af_packet.source import AfPacketSource


class Opener(Protocol):
    def __call__(self, device: str = DEVICE, **options: object) -> AfPacketSource: ...


@pytest.fixture
def network() -> Iterator[None]:
    with own_network():
        yield


@pytest.fixture
def live(network: None) -> Iterator[Opener]:
    """Opens sources with a small ring, which are closed at the end."""
    from gscope.capture.sources.af_packet.source import AfPacketSource

    opened: list[AfPacketSource] = []

    def open_live(device: str = DEVICE, **options: object) -> AfPacketSource:
        is_paused = bool(options.pop("is_paused", False))
        settings: dict[str, object] = {"ring_bytes": 4 << 20, **options}
        source = AfPacketSource(device, device, **settings)  # type: ignore[arg-type]  # any option
        opened.append(source)
        source.open()
        if not is_paused:
            source.start()
        return source

    yield open_live
    for source in opened:
        source.close()
