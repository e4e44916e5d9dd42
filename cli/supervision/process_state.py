"""The states of a process of a run, and the transitions between them.

::

    STARTING ──► RUNNING ──────► STOPPING        the capture daemon ends its input
       └───────► INTERRUPTED ──────▲
                 RUNNING ──► FINISHED ──► EXITED the HFTA job has answered everything

    STARTING, RUNNING, INTERRUPTED, STOPPING ──► EXITED               no longer needed
                                             ├─► BACKOFF ──► STARTING failed, restarted
                                             └─► FATAL                failed, given up

``ManagedProcess`` owns the state of its process; all others read it.
"""

from __future__ import annotations

from enum import Enum, auto


class ProcessState(Enum):
    """What a process is doing, as far as its supervisor knows.

    Attributes:
        STARTING: it was spawned, and has not reported that it works.
        RUNNING: it has reported that it works: the capture daemon listens, the HFTA job is ready.
        INTERRUPTED: the capture daemon was asked to end its input while it started.
        STOPPING: the capture daemon listens, and was asked to end its input.
        FINISHED: the HFTA job has answered everything; its process may still be ending.
        BACKOFF: it failed, and is restarted after a pause.
        EXITED: it is not needed any more, and its process is gone.
        FATAL: it failed, and is not restarted.
    """

    STARTING = auto()
    RUNNING = auto()
    INTERRUPTED = auto()
    STOPPING = auto()
    FINISHED = auto()
    BACKOFF = auto()
    EXITED = auto()
    FATAL = auto()

    @property
    def is_up(self) -> bool:
        """Whether a process is expected to run, and to give signs of life."""
        return self in _UP

    @property
    def is_working(self) -> bool:
        """Whether the process has reported that it works."""
        return self in (ProcessState.RUNNING, ProcessState.STOPPING)

    @property
    def is_over(self) -> bool:
        """Whether the run does not wait for the process any more."""
        return self in (ProcessState.FINISHED, ProcessState.EXITED, ProcessState.FATAL)


_UP = (
    ProcessState.STARTING,
    ProcessState.RUNNING,
    ProcessState.INTERRUPTED,
    ProcessState.STOPPING,
)
_DOWN = {ProcessState.BACKOFF, ProcessState.FATAL, ProcessState.EXITED}

TRANSITIONS: dict[ProcessState, frozenset[ProcessState]] = {
    ProcessState.STARTING: frozenset({ProcessState.RUNNING, ProcessState.INTERRUPTED, *_DOWN}),
    ProcessState.RUNNING: frozenset({ProcessState.STOPPING, ProcessState.FINISHED, *_DOWN}),
    ProcessState.INTERRUPTED: frozenset({ProcessState.STOPPING, *_DOWN}),
    ProcessState.STOPPING: frozenset(_DOWN),
    ProcessState.FINISHED: frozenset({ProcessState.EXITED}),
    # A job that was ended because it hung may have reported before that it had finished.
    ProcessState.BACKOFF: frozenset(
        {ProcessState.STARTING, ProcessState.FINISHED, ProcessState.FATAL, ProcessState.EXITED}
    ),
    ProcessState.EXITED: frozenset(),
    ProcessState.FATAL: frozenset(),
}
"""The states that may follow each state."""


class Lifecycle:
    """The state of one process, which changes by legal transitions only.

    Args:
        name: of the process, for the message of an illegal transition.

    Attributes:
        state: the present one.
        has_worked: whether the process, or one that it replaces, has reported that it works.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.state = ProcessState.STARTING
        self.has_worked = False

    def enter(self, state: ProcessState) -> None:
        """Change the state.

        Raises:
            RuntimeError: no transition leads there from the present state.
        """
        if state not in TRANSITIONS[self.state]:
            message = f"illegal transition of {self._name}: {self.state.name} to {state.name}"
            raise RuntimeError(message)
        self.state = state
        self.has_worked |= state.is_working
