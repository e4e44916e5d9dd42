"""A headless Chromium that opens pages: a client of its DevTools protocol over a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--remote-debugging-pipe",
)
_AT_3_AND_4 = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for place, end in zip((3, 4), ends):
    os.dup2(end, place)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""The browser expects the pipe at these descriptors."""

_AT_ONCE = 1 << 16


class Chromium:
    """A browser with one page.

    Args:
        read: the descriptor that messages of the browser come from.
        write: the descriptor that messages to it go to.

    Attributes:
        complaints: what the page has written to the console, or the browser about the page.
    """

    def __init__(self, read: int, write: int) -> None:
        self._read = read
        self._write = write
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        self._requests: dict[str, str] = {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, width: int = 1280, height: int = 1000) -> Self:
        """Show a file in a window of a size, and wait until it is loaded."""
        self.resize(width, height)
        self.complaints.clear()
        self._requests.clear()
        self._events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not self._is_loaded(path.as_uri()):
            self._take(self._message())
        return self

    def end(self) -> None:
        """Ask the browser to end; it may be gone before it answers."""
        self._session = None
        self._send("Browser.close", {})

    def _is_loaded(self, address: str) -> bool:
        """Return whether a page has come since the last question, and it is that of an address."""
        has_come = any(event["method"] == "Page.loadEventFired" for event in self._events)
        self._events.clear()
        return has_come and self.value("location.href") == address

    @property
    def requests(self) -> list[str]:
        """The addresses that the page has asked for, without those that its policy stops."""
        return list(self._requests.values())

    def resize(self, width: int, height: int) -> None:
        """Give the window a size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """Prefer ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def value(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def point(self, x: float, y: float) -> None:
        """Move the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = self._send(method, parameters)
        while True:
            answer = self._message()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._take(answer)

    def _send(self, method: str, parameters: dict[str, Any]) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        rest = memoryview(json.dumps(message).encode() + b"\0")
        while rest:
            rest = rest[os.write(self._write, rest) :]
        return self._number

    def _take(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        match event["method"]:
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(event["params"]["args"]))
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(event["params"]["exceptionDetails"]))
            case "Log.entryAdded":
                self.complaints.append(event["params"]["entry"]["text"])
            case "Network.requestWillBeSent":
                self._requests[event["params"]["requestId"]] = event["params"]["request"]["url"]
            case "Network.loadingFailed" if event["params"].get("blockedReason") == "csp":
                del self._requests[event["params"]["requestId"]]

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._read, _AT_ONCE)
            assert data, "Chromium has ended"
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        return message


@contextmanager
def chromium(folder: Path) -> Iterator[Chromium]:
    """Run Chromium with a profile in ``folder``."""
    from_us, to_browser = os.pipe()
    from_browser, to_us = os.pipe()
    command = ["chromium", *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", _AT_3_AND_4, str(from_us), str(to_us), *command],
        pass_fds=(from_us, to_us),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(from_us)
    os.close(to_us)
    try:
        browser = Chromium(from_browser, to_browser)
        yield browser
        browser.end()
    finally:
        os.close(to_browser)
        os.close(from_browser)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
