"""Devices are opened together; a daemon that takes over does without those that are gone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gscope.capture.live import devices as module
from gscope.capture.live.devices import Devices
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.errors import CaptureError, NoDeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = CaptureSettings(
    tuple(InterfaceSettings(name, device=DeviceSettings(f"eth_{name}")) for name in ("a", "b"))
)
WITHOUT_MISSING = replace(SETTINGS, allow_missing_devices=True)
GONE = "eth_b was missing when the capture daemon was restarted"

Problems = dict[str, CaptureError]


class _Source:
    def __init__(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[[Problems], list[_Source]]:
    """Makes devices fail to open, by interface; gives the sources of the others."""

    def prepare(problems: Problems) -> list[_Source]:
        sources: list[_Source] = []

        def open_one(name: str, _device: DeviceSettings) -> Any:
            if name in problems:
                raise problems[name]
            sources.append(_Source())
            return sources[-1]

        monkeypatch.setattr(module, "_opened", open_one)
        return sources

    return prepare


def test_a_device_that_is_not_there_at_the_start_is_refused(
    opened: Callable[[Problems], list[_Source]],
) -> None:
    sources = opened({"b": NoDeviceError("no eth_b")})
    with pytest.raises(CaptureError, match=r"^no eth_b$"):
        Devices(SETTINGS)
    assert [source.is_open for source in sources] == [False]


def test_a_daemon_that_takes_over_does_without_a_device_that_is_gone(
    opened: Callable[[Problems], list[_Source]],
) -> None:
    opened({"b": NoDeviceError("no eth_b")})
    with Devices(WITHOUT_MISSING) as devices:
        assert list(devices.sources) == ["a"]
        assert devices.missing == {"b": GONE}


def test_it_does_not_do_without_all_of_them(
    opened: Callable[[Problems], list[_Source]],
) -> None:
    opened({"b": NoDeviceError("no eth_b")})
    with pytest.raises(CaptureError, match=f"^{GONE}$"):
        Devices(WITHOUT_MISSING, ended=["a"])


def test_what_else_may_be_wrong_with_a_device_is_refused_as_ever(
    opened: Callable[[Problems], list[_Source]],
) -> None:
    opened({"a": NoDeviceError("no eth_a"), "b": CaptureError("no memory")})
    with pytest.raises(CaptureError, match="no memory"):
        Devices(WITHOUT_MISSING)
