"""Every error gscope raises on purpose.

GscopeError
 ├─ UsageError            a flag, a value or a configuration file is wrong      exit 2
 ├─ GsqlError             a query is wrong; carries line, column and the remedy exit 2
 │   ├─ GsqlSyntaxError   the text does not parse
 │   ├─ ResolveError      a name is unknown or ambiguous
 │   ├─ TypeMismatchError an operator or function gets the wrong type
 │   ├─ TemporalError     the query could never close a group or bound a state
 │   └─ UnsupportedError  understood, but this version does not run it
 ├─ CaptureError          a packet source cannot be opened or read              exit 1
 │   ├─ NoDeviceError      there is no such network device; it may come back
 │   └─ NotACaptureError   it can be read, but there is no capture in it
 ├─ StreamError           the stream log or its wire is unusable                exit 1
 │   ├─ DisconnectedError  its server is gone; it may come back
 │   └─ RefusedInputError  a relay and its input do not fit together, and never will
 ├─ UserCodeError         a user's function or aggregate failed                 exit 1
 └─ EngineError           the HFTA job or its Java failed                       exit 1
     └─ JavaGoneError      Java ended; the job can be started again
         └─ JavaMemoryError its heap was too small, and will be for the same rows

Odd traffic never raises: it is counted.
"""

from __future__ import annotations

from gscope.records import dataclass

_LONGEST_LINE, _CHARACTERS_BEFORE = 160, 100
"""How much of a source line is shown, and how much of that before the place that is marked."""


class GscopeError(Exception):
    """Base of all deliberate errors.

    Attributes:
        exit_code: what the command line exits with.
        leaves_data: whether a live run that fails with it may have packets or rows to answer.
    """

    exit_code = 1
    leaves_data = True


class UsageError(GscopeError):
    """A flag, a value or a configuration file is wrong."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a query text: 1-based ``line`` and ``column``, and how many characters to mark."""

    line: int
    column: int
    length: int = 1


class GsqlError(GscopeError):
    """A query is wrong.

    Args:
        message: what is wrong and what was expected, one sentence.
        text: the whole query text, for the marked source line.
        position: where in ``text``; None when there is no single place.
        remedy: what to write instead, one sentence, or "".
        source: what the text is called in the report (a file name), "" for an error that no text is
            to blame for.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        position: Position | None = None,
        remedy: str = "",
        source: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.position = position
        self.remedy = remedy
        self.source = source

    def located(self, text: str, source: str) -> GsqlError:
        """The same error with text and source filled in where they were missing."""
        if not self.text:
            self.text = text
            self.source = source
        return self

    def report(self) -> str:
        """The message with line, column, the marked source line and the remedy."""
        lines = [self._headline()]
        source_lines = self.text.splitlines()
        if self.position is not None and self.position.line <= len(source_lines):
            line, at = _excerpt(source_lines[self.position.line - 1], self.position.column - 1)
            marks = "^" * max(1, min(self.position.length, len(line) - at))
            lead = "".join("\t" if c == "\t" else " " for c in line[:at])
            number = str(self.position.line)
            lines += [f"  {number} | {line}", f"  {' ' * len(number)} | {lead}{marks}"]
        if self.remedy:
            lines.append(f"  {self.remedy}")
        return "\n".join(lines)

    def _headline(self) -> str:
        if self.position is None:
            return f"{self.source}: {self.message}" if self.source else self.message
        place = f"{self.source or 'query'}:{self.position.line}:{self.position.column}"
        return f"{place}: {self.message}"

    def __str__(self) -> str:
        return self.report()


def _excerpt(line: str, at: int) -> tuple[str, int]:
    """The line, of a long one the part around the character ``at``, and where that is in it."""
    begin = max(0, at - _CHARACTERS_BEFORE) if len(line) > _LONGEST_LINE else 0
    end = begin + _LONGEST_LINE
    before, behind = "…" if begin else "", "…" if end < len(line) else ""
    return f"{before}{line[begin:end]}{behind}", at - begin + len(before)


class GsqlSyntaxError(GsqlError):
    """The text does not parse."""


class ResolveError(GsqlError):
    """A name is unknown or ambiguous."""


class TypeMismatchError(GsqlError):
    """An operator or function gets the wrong type."""


class TemporalError(GsqlError):
    """The query could never close a group or bound a state."""


class UnsupportedError(GsqlError):
    """Understood, but this version does not run it."""


class CaptureError(GscopeError):
    """A packet source cannot be opened or read."""


class NoDeviceError(CaptureError):
    """There is no network device of that name now; one that vanished may come back."""


class NotACaptureError(CaptureError):
    """A file can be read, but it is empty or something else than a capture."""


class CutCaptureError(NotACaptureError):
    """A compressed file is damaged before the header of the capture in it ends."""


class StreamError(GscopeError):
    """The stream log or its wire is unusable."""


class DisconnectedError(StreamError):
    """The server of the stream log is gone; a daemon that is started again serves the same log."""


class RefusedInputError(StreamError):
    """An input of a relay refuses it, or runs other queries: a restart would not help."""


class UserCodeError(GscopeError):
    """A function or aggregate of a user's file raised, or gave what it was not declared to give."""


class EngineError(GscopeError):
    """The HFTA job or its Java failed."""


class JavaGoneError(EngineError):
    """Spark's Java ended while it was needed.

    The job goes on from its last commit when it is started again.
    """


class JavaMemoryError(JavaGoneError):
    """Spark's Java ran out of heap; the same rows will need as much of it again."""
