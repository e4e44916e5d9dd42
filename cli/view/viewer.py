"""The thread that draws the view and reads keys."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from gscope.cli.view.actions import Actions, Request
from gscope.cli.view.choices import Choices
from gscope.cli.view.frame import Frame, FrameDrawer
from gscope.cli.view.recording import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.cli.view.model import ViewModel
    from gscope.cli.view.terminal.screen import Screen

_REDRAW_S = 0.5
"""The least seconds between two pictures that no key has asked for."""

_LOOK_S = 1.0
"""Seconds between two looks at the counters of the run, and the most between two pictures."""

_WAIT_S = 0.25
"""The most seconds to wait for a key: then the size of the terminal is looked at."""


class Viewer:
    """Shows a model on a screen until the user leaves or the run does.

    Args:
        model: what there is to see.
        open_screen: returns the screen, and what restores the terminal.
        on_quit: called when the user asks to end a run that has not ended; None if the run goes on
            when the user leaves.
        look: called every second, to bring the account of the run up to date.
        notify: notifies the user of what has been recorded.
    """

    def __init__(
        self,
        model: ViewModel,
        open_screen: Callable[[], tuple[Screen, Callable[[], None]]],
        on_quit: Callable[[], None] | None,
        look: Callable[[], None],
        notify: Callable[[str], None],
    ) -> None:
        self._model = model
        self._open_screen = open_screen
        self._on_quit = on_quit
        self._look = look
        self._recorder = Recorder(model, notify)
        self._is_leaving = threading.Event()
        self._is_overwritten = threading.Event()
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the screen shows the view."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Show the view."""
        screen, restore = self._open_screen()
        self._thread = threading.Thread(
            target=self._run, args=(screen, restore), name="view", daemon=True
        )
        self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Wait until the user has left, at most ``timeout_s``."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def redraw(self) -> None:
        """Show all lines again: something else was written to the terminal."""
        self._is_overwritten.set()

    def leave(self) -> None:
        """Restore the terminal; an error of the thread is raised here."""
        self._is_leaving.set()
        if self._thread is not None:
            self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, screen: Screen, restore: Callable[[], None]) -> None:
        try:
            self._follow(screen)
        except EOFError:
            pass  # the terminal is gone, and the run has its SIGHUP
        except BaseException as error:  # raised by leave() once the terminal is restored
            self._error = error
            if self._on_quit is not None and not self._model.state.has_ended:
                self._on_quit()
        finally:
            self._recorder.stop()
            restore()

    def _follow(self, screen: Screen) -> None:
        choices = Choices(self._model, self._recorder)
        drawer = FrameDrawer(self._model, choices, has_unicode=screen.has_unicode)
        actions = Actions(choices)
        frame = Frame()
        drawn_version, drawn_size, drawn_s, looked_s = -1, None, 0.0, 0.0
        while not self._is_leaving.is_set():
            now_s = time.monotonic()
            if now_s - looked_s >= _LOOK_S:
                looked_s = now_s
                self._look()
            if self._is_overwritten.is_set():
                self._is_overwritten.clear()
                screen.redraw()
                drawn_size = None
            version, size = self._model.version, screen.size
            is_due = version != drawn_version and now_s - drawn_s >= _REDRAW_S
            if version != drawn_version:
                self._recorder.advance()
            if is_due or size != drawn_size or now_s - drawn_s >= _LOOK_S:
                frame = drawer.draw(size)
                screen.draw(frame.lines)
                drawn_version, drawn_size, drawn_s = version, size, now_s
            events = screen.events(_WAIT_S)
            for event in events:
                request = actions.on(event, frame)
                if request is Request.REDRAW:
                    screen.redraw()
                elif request is Request.PACKETS:
                    frame = drawer.draw(screen.size)
                    choices.ask_packets(frame.chosen)
                elif request is Request.QUIT and not self._quit(choices):
                    return
            if events:
                drawn_size = None

    def _quit(self, choices: Choices) -> bool:
        """End the run; return False to leave the view, of a run that has ended or goes on."""
        if self._model.state.has_ended or self._on_quit is None:
            return False
        self._on_quit()
        choices.message = "the run ends, and answers what it has read; q again ends it at once"
        return True
