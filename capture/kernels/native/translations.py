"""Translations of functions, for other modules of one kernel and for functions that are the same.

Each LFTA of a kernel is a module, with its own copies of the functions that all LFTAs call. And
LFTAs of one layout have functions whose sources differ only in the number of the LFTA, as
``fold_3_a`` and ``fold_17_a``. What was translated once is repeated with other names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gscope.capture.kernels.native.source import generated_text, python_function

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from types import FunctionType

    from gscope.capture.kernels.language.kinds import AnyKind

_NUMBER = re.compile(r"_(\d+)(?=_|$)")
_DOCSTRING = re.compile(r'^    """.*?"""\n', re.DOTALL | re.MULTILINE)
_REFERENCE = re.compile(r'@"[^"]*"')
_MARK = "_#"


class Use(NamedTuple):
    """A function, the kinds of its arguments, and the values of those that are constant."""

    function: Any
    kinds: tuple[tuple[str, AnyKind], ...]
    fixed: tuple[tuple[str, Any], ...]


class Call(NamedTuple):
    """A call in a function that was translated.

    Attributes:
        called: what is called; ``use_in`` gives it for another function.
        reference: its name in the assembly.
        result: the kind of its result.
    """

    called: Use
    reference: str
    result: AnyKind


class Translation(NamedTuple):
    """A function that was translated.

    Attributes:
        function: the function.
        result: the kind of its result.
        signature: its LLVM type.
        reference: its name in the assembly.
        text: its definition.
        calls: the functions that it calls, in the order in which they were translated.
        declared: what else it calls, by name: intrinsics and functions of the C library.
    """

    function: Any
    result: AnyKind
    signature: Any
    reference: str
    text: str
    calls: tuple[Call, ...]
    declared: Mapping[str, Any]

    def use_in(self, call: Call, function: FunctionType) -> Use:
        """Return what ``function``, which is translated like this one, calls there."""
        called = call.called.function
        if function is not self.function and generated_text(called) is not None:
            name = _renumbered(called.__name__, _number(self.function), f"_{_number(function)}")
            found = python_function(function.__globals__[name])
            assert found is not None, name
            called = found
        return call.called._replace(function=called)

    def renamed(self, names: Mapping[str, str]) -> str:
        """Return the definition with other references."""
        return _REFERENCE.sub(lambda found: names.get(found[0], found[0]), self.text)


def references(text: str) -> set[str]:
    """Return the references in a definition."""
    return set(_REFERENCE.findall(text))


class Translations:
    """The functions of one kernel that were translated so far."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Translation] = {}
        self._sources: dict[FunctionType, Hashable] = {}

    def find(self, use: Use) -> Translation | None:
        """Return the translation of a function that is the same except for its number, if known."""
        return self._known.get(self._key(use))

    def add(self, use: Use, translation: Translation) -> None:
        """Add a translation, unless the function reads constants that depend on its number."""
        function = use.function
        text, number = generated_text(function), _number(function)
        if text is not None and number is not None:
            named = set(re.findall(rf"\b\w*_{number}(?!\d)\w*", text))
            values = (function.__globals__[name] for name in named & function.__globals__.keys())
            if any(python_function(value) is None for value in values):
                return
        self._known[self._key(use)] = translation

    def _key(self, use: Use) -> Hashable:
        source = self._sources.get(use.function)
        if source is None:
            source = self._sources[use.function] = _source(use.function)
        return source, use.kinds, use.fixed


def _source(function: FunctionType) -> Hashable:
    """Return what functions that are the same have in common: the source without their number."""
    text, number = generated_text(function), _number(function)
    if text is None or number is None:
        return function
    return _renumbered(_DOCSTRING.sub("", text, count=1).rstrip(), number, _MARK)


def _number(function: FunctionType) -> str | None:
    """Return the number in the name of a generated function."""
    found = _NUMBER.search(function.__name__)
    return None if found is None else found[1]


def _renumbered(text: str, number: str | None, mark: str) -> str:
    return text if number is None else re.sub(rf"_{number}(?!\d)", mark, text)
