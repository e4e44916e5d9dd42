"""A program as a file, which a run hands to its processes and compares when it is resumed.

The file is JSON, in lines: the version that wrote it, a digest, the calls of all expressions, and
the program itself. A call is written once and referred to by its number, so that neither deep nor
shared expressions make the file large or need a deep stack. Reading it creates frozen plan nodes
and nothing else: unlike a pickle, it cannot run code.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from enum import Enum
from typing import TYPE_CHECKING, Any

from gscope import __version__
from gscope.errors import UsageError
from gscope.queries.expressions.expressions import Call
from gscope.queries.os_errors import os_reason
from gscope.queries.ownership import is_trusted_file
from gscope.queries.plan.program import Program
from gscope.queries.run_folder.whole_file import replace_file
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


FORMAT = 1
"""The version of the file's layout; the plan nodes in it change with the version of gscope."""

_KIND = "is"
"""The key that holds the class of an object."""


@dataclass(frozen=True, slots=True)
class ProgramHead:
    """The head of the file of a program.

    Attributes:
        version: the version of gscope that wrote the file.
        digest: the digest of the program: equal programs of one version have equal digests.
    """

    version: str
    digest: str

    @property
    def is_of_this_version(self) -> bool:
        """Whether this version of gscope wrote the file."""
        return self.version == __version__


def write_program(path: Path, program: Program) -> None:
    """Write ``program`` to ``path``, replacing any file there.

    Raises:
        OSError: the file cannot be written.
    """
    body = _body(program)
    head = {"format": FORMAT, "gscope": __version__, "digest": _digest(body.encode())}
    replace_file(path, f"{json.dumps(head)[:-1]},\n{body}{_END}")


def program_digest(program: Program) -> str:
    """Return the digest that ``write_program`` gives ``program``."""
    return _digest(_body(program).encode())


def read_head(path: Path) -> ProgramHead:
    """Return the head of the file at ``path``, whatever version wrote it.

    Raises:
        UsageError: the file cannot be read, or holds no program.
    """
    return _head(path, _object_in(path, _text(path)))


def read_program(path: Path) -> Program:
    """Return the program in the file at ``path``.

    Raises:
        UsageError: the file cannot be read, is damaged, or was written by another version.
    """
    text = _text(path)
    value = _object_in(path, text)
    head = _head(path, value)
    if not head.is_of_this_version:
        message = f"{path} was written by gscope {head.version}, expected {__version__}"
        raise UsageError(message)
    try:
        calls = _read_calls(value["calls"])
        program = _read(value["program"], calls)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        message = f"the program {path} is damaged: {type(error).__name__}: {error}"
        raise UsageError(message) from error
    if not isinstance(program, Program) or _digest(_body_in(text)) != head.digest:
        message = f"the program {path} is damaged: its digest differs"
        raise UsageError(message)
    return program


def _head(path: Path, value: dict[str, Any]) -> ProgramHead:
    try:
        return ProgramHead(str(value["gscope"]), str(value["digest"]))
    except KeyError as error:
        message = f"{path} does not hold a program: expected the key {error}"
        raise UsageError(message) from error


def _text(path: Path) -> bytes:
    """Return the content of the file.

    Raises:
        UsageError: the file is missing, or another user may have written it.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        message = f"cannot read the program {path}: {os_reason(error)}"
        raise UsageError(message) from error
    if not is_trusted_file(path):
        message = f"the program {path} is refused: another user could have written it"
        raise UsageError(message)
    return text


def _object_in(path: Path, text: bytes) -> dict[str, Any]:
    """Return the object that the content of a file is.

    Raises:
        UsageError: it is not JSON, or not an object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{path} does not hold a program: {error}"
        raise UsageError(message) from error
    if not isinstance(value, dict):
        message = f"{path} does not hold a program: expected a JSON object"
        raise UsageError(message)
    return value


def _body(program: Program) -> str:
    """Return calls and program as the lines between the head and the closing brace."""
    writer = ProgramWriter()
    tree = json.dumps(writer.plain(program))
    calls = ",\n".join(writer.calls)
    return f'"calls": [\n{calls}\n],\n"program": {tree}'


def _body_in(text: bytes) -> bytes:
    """Return these lines of the content of a file."""
    return text.partition(b",\n")[2].removesuffix(_END.encode())


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


_END = "\n}\n"


class ProgramWriter:
    """Turns plan nodes into plain JSON values, and collects their calls.

    Attributes:
        calls: the text of each call, arguments before the calls that use them.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._numbers: dict[str, int] = {}
        # Keeps the calls alive, too, because the id of a dead object may be used again.
        self._seen: dict[int, tuple[Call, int]] = {}

    def plain(self, value: object) -> object:
        """Return ``value`` as a value of JSON.

        Raises:
            TypeError: a program cannot hold such a value.
        """
        if isinstance(value, Call):
            return {"call": self._number(value)}
        if isinstance(value, Enum):
            return {_KIND: type(value).__name__, "name": value.name}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, bytes):
            return {"bytes": value.decode("latin-1")}
        if isinstance(value, tuple):
            return [self.plain(each) for each in value]
        if type(value) in _fields():
            return self._object(value)
        message = f"a program holds a {type(value).__name__}, which no file of a program can hold"
        raise TypeError(message)

    def _object(self, value: Any) -> dict[str, object]:
        made: dict[str, object] = {_KIND: type(value).__name__}
        for name in _fields()[type(value)]:
            made[name] = self.plain(getattr(value, name))
        return made

    def _number(self, call: Call) -> int:
        """Return the number of a call, after writing it and, without recursion, all calls in it."""
        waiting = [call]
        while waiting:
            top = waiting[-1]
            missing = [a for a in top.arguments if isinstance(a, Call) and id(a) not in self._seen]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if id(top) not in self._seen:
                text = json.dumps(self._object(top))
                number = self._numbers.setdefault(text, len(self._numbers))
                if number == len(self.calls):
                    self.calls.append(text)
                self._seen[id(top)] = (top, number)
        return self._seen[id(call)][1]


@functools.cache
def _fields() -> dict[type[Any], tuple[str, ...]]:
    """Return the names of the fields of every plan node."""
    return {
        each: tuple(field.name for field in dataclasses.fields(each))
        for each in node_classes().values()
        if dataclasses.is_dataclass(each)
    }


def _read_calls(values: list[Any]) -> list[Call]:
    calls: list[Call] = []
    for value in values:
        call = _read(value, calls)
        if not isinstance(call, Call):
            raise TypeError(value)
        calls.append(call)
    return calls


def _read(value: Any, calls: list[Call]) -> Any:
    """Return the plan node or plain value that ``ProgramWriter.plain`` wrote."""
    if isinstance(value, list):
        return tuple(_read(each, calls) for each in value)
    if not isinstance(value, dict):
        return value
    if _KIND not in value:
        ((kind, content),) = value.items()
        if kind == "call":
            return calls[content]
        return float.fromhex(content) if kind == "float" else content.encode("latin-1")
    made = node_classes()[value[_KIND]]
    if issubclass(made, Enum):
        return made[value["name"]]
    return made(**{name: _read(each, calls) for name, each in value.items() if name != _KIND})


@functools.cache
def node_classes() -> dict[str, type[Any]]:
    """Return every class that a program may consist of, by name."""
    from gscope.queries.catalog.aggregate import partial_op
    from gscope.queries.catalog.user_functions import files as user_files
    from gscope.queries.expressions import expressions, schema, types
    from gscope.queries.gsql import input_nodes
    from gscope.queries.plan import (
        logical,
        program,
        program_partitioning,
        program_sampling,
        row_order,
        sampling_operator,
        window_node,
    )
    from gscope.queries.plan.windows import slicing, window

    modules = (
        program,
        partial_op,
        expressions,
        schema,
        types,
        user_files,
        input_nodes,
        row_order,
        window_node,
        program_partitioning,
        program_sampling,
        sampling_operator,
        slicing,
        window,
        logical,
    )
    return {name: each for module in reversed(modules) for name, each in _made_of(module)}


def _made_of(module: Any) -> Iterator[tuple[str, type[Any]]]:
    for name, value in vars(module).items():
        is_own = isinstance(value, type) and value.__module__ == module.__name__
        if is_own and (dataclasses.is_dataclass(value) or issubclass(value, Enum)):
            yield name, value
