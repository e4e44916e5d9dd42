"""A child process of a run: its pipes, its events, its standard error and its end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gscope.cli.events import CAPTURE, Event, Events, ProcessExit
from gscope.errors import StreamError
from gscope.queries.streams.event_codec import decode
from gscope.queries.streams.process_events import CAPTURE_EVENTS, JOB_EVENTS, ProcessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gscope.queries.streams.process_events import ProcessEvent


UNPRIVILEGED = "gscope.cli.supervision.unprivileged"

FOLLOW_S = 1.0
"""Seconds to wait for output that the children of a killed child keep open."""

MAX_LINE_BYTES = 4_096
"""Longer lines on a child's standard error are split into pieces of this size."""


class ChildProcess:
    """A child that reports events as lines on its standard output.

    A pipe to the child stays open. When this process dies, in whatever way, the child reads the end
    of the pipe and exits. The pipe is the child's standard input or, if a capture needs that, the
    descriptor that its second argument names. The child has a process group of its own, so that
    Ctrl-C reaches the supervisor alone, and blocks SIGUSR1, which asks the supervisor for counters.

    Args:
        name: of the process: ``CAPTURE`` or ``JOB``.
        module: the module to run.
        run_dir: the folder of the run, the child's first argument.
        events: the queue for the child's events; the last one is ``ProcessExit``.
        on_words: called with each line of standard error, by a thread of its own; None: only the
            last line is kept.
        is_privileged: whether the child keeps this process's capabilities, to drop them itself.
        gets_stdin: whether the child reads this process's standard input.
        inherited: open descriptors that the child inherits.
        grace_s: seconds that the child has to end its own children before it is killed; 0: none.
        kinds: the events that it reports; None: those that belong to its name.
        further: arguments behind the descriptor of the pipe.
    """

    def __init__(
        self,
        name: str,
        module: str,
        run_dir: Path,
        events: Events,
        *,
        on_words: Callable[[str], None] | None = None,
        is_privileged: bool = False,
        gets_stdin: bool = False,
        inherited: tuple[int, ...] = (),
        grace_s: float = 0.0,
        kinds: tuple[type[ProcessEvent], ...] | None = None,
        further: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self._kinds = kinds or (CAPTURE_EVENTS if name == CAPTURE else JOB_EVENTS)
        self._grace_s = grace_s
        self._events = events
        self._on_words = on_words
        self._last_words = ""
        reader, writer = os.pipe()
        self._pipe = os.fdopen(writer, "wb")
        modules = [module] if is_privileged else [UNPRIVILEGED, module]
        # Without -P Python would import from the working directory, which others may write to.
        arguments = [sys.executable, "-P", "-m", *modules, str(run_dir)]
        if gets_stdin or further:
            arguments += [str(reader) if gets_stdin else "0", *further]
        with os.fdopen(reader, "rb"), _blocked(signal.SIGUSR1):
            self._process = subprocess.Popen(
                arguments,
                stdin=None if gets_stdin else reader,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(*inherited, *((reader,) if gets_stdin else ())),
                process_group=0,
            )
        self._listener = threading.Thread(target=self._listen, name=f"words-{name}", daemon=True)
        self._listener.start()
        self._follower = threading.Thread(target=self._follow, name=f"events-{name}", daemon=True)
        self._follower.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def write_line(self, line: str) -> None:
        """Write a line to the pipe; a child that is gone is noticed by its exit event."""
        with suppress(BrokenPipeError):
            self._pipe.write(line.encode() + b"\n")
            self._pipe.flush()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; harmless when the child has ended."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def stop(self) -> None:
        """End the child and wait for it and its last event; harmless when it has ended."""
        if self._process.poll() is None and self._grace_s:
            self._process.terminate()
            self._await_end(self._grace_s)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._follower.join(FOLLOW_S)
        with suppress(BrokenPipeError):
            self._pipe.close()

    def _await_end(self, timeout_s: float) -> None:
        """Wait at most ``timeout_s`` for the end, without the 50 ms polls of ``Popen.wait``."""
        # Another thread waits for the child, too, and may have reaped it.
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(timeout_s * 1000)
            os.close(descriptor)

    def last_words(self) -> str:
        """Return the last line that the child wrote to standard error, "" if there is none."""
        return self._last_words

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as pipe:
            while raw := pipe.readline(MAX_LINE_BYTES):
                if line := raw.decode(errors="replace").rstrip():
                    self._last_words = line
                    if self._on_words is not None:
                        self._on_words(line)

    def _follow(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    event = decode(line, self._kinds)
                except StreamError as error:
                    event = ProcessError(str(error), is_final=True)
                if event is not None:
                    self._events.put(Event(self.name, event, self.pid))
        code = self._process.wait()
        self._listener.join(FOLLOW_S)
        self._events.put(Event(self.name, ProcessExit(code), self.pid))


@contextmanager
def _blocked(number: signal.Signals) -> Iterator[None]:
    """Block a signal in children that are started meanwhile, which inherit this thread's mask."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
