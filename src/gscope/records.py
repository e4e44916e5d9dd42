"""``dataclass``: the standard library's decorator, with classes made faster.

The classes are made in a tenth of the time. The standard library writes each method of a data class
as source text and compiles it at once: about half a millisecond for a class, and each process of
gscope makes 140 to 330 of them when it starts. Here comparison, hash, representation and the guard
of frozen fields are closures, and ``__init__`` is compiled when the first object is made, which for
most classes is never. Everything else, such as ``fields``, ``replace`` and slots, is the standard
library's. For type checkers the decorator is the standard one. Figures are in
``docs/decisions/0090-records.md``.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # exported
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        """Return ``cls`` as a data class, or a decorator with these settings.

        Args:
            cls: the class; None if the decorator is called with settings only.
            frozen: whether fields cannot be assigned after ``__init__``.
            slots: whether objects have slots for their fields, and no ``__dict__``.
            eq: whether objects with equal fields are equal.
        """

        def decorate(cls):
            return _made(cls, frozen, slots, eq)

        return decorate if cls is None else decorate(cls)


def _made(cls: Any, is_frozen: bool, has_slots: bool, has_eq: bool) -> Any:
    # Python itself sets __hash__ to None where a class defines only __eq__.
    own = cls.__dict__
    has_hash = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
    made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=has_slots)(cls)
    fields = dataclasses.fields(made)
    _define(made, _init_at_first_call(made, is_frozen))
    _define(made, _repr_of([each.name for each in fields if each.repr]))
    if has_eq:
        _define(made, _eq_of([each.name for each in fields if each.compare]))
        if not has_hash:
            hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
            made.__hash__ = _hash_of(hashed) if is_frozen else None  # type: ignore[assignment]
    if is_frozen:
        _freeze(made, [each.name for each in fields], has_slots)
    return made


def _define(cls: type[Any], method: Callable[..., Any]) -> None:
    """Add ``method`` to ``cls`` unless the class defines one of that name itself."""
    if method.__name__ not in cls.__dict__:
        setattr(cls, method.__name__, method)


def _init_at_first_call(cls: Any, is_frozen: bool) -> Callable[..., None]:
    def __init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
        compiled = _compiled_init(cls, is_frozen)
        cls.__init__ = compiled
        compiled(self, *args, **kwargs)

    return __init__


def _compiled_init(cls: type[Any], is_frozen: bool) -> Callable[..., None]:
    """Return ``__init__`` for the fields of ``cls``, as the standard library would."""
    missing = dataclasses.MISSING
    names: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": missing}
    by_position = ["self"]
    by_keyword: list[str] = []
    lines: list[str] = []
    for each in dataclasses.fields(cls):
        value, parameter = each.name, each.name
        if each.default_factory is not missing:
            names[f"_default_{each.name}"] = each.default_factory
            parameter += "=_MISSING"
            value = f"_default_{each.name}()"
            if each.init:
                value += f" if {each.name} is _MISSING else {each.name}"
        elif each.default is not missing:
            names[f"_default_{each.name}"] = each.default
            parameter += f"=_default_{each.name}"
            value = each.name if each.init else f"_default_{each.name}"
        elif not each.init:
            continue
        if each.init:
            (by_keyword if each.kw_only else by_position).append(parameter)
        lines.append(
            f" _set(self, {each.name!r}, {value})" if is_frozen else f" self.{each.name} = {value}"
        )
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    parameters = ", ".join([*by_position, *(["*", *by_keyword] if by_keyword else [])])
    exec("\n".join([f"def __init__({parameters}):", *lines, " return"]), names)
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    return made


def _values_of(names: list[str]) -> Callable[[Any], Any]:
    """Return a function of an object that returns the values of its fields, to compare or hash."""
    if not names:
        return lambda _: ()
    if len(names) == 1:
        (name,) = names
        return lambda record: (getattr(record, name),)
    return attrgetter(*names)


def _repr_of(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr("...")
    def __repr__(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({values})"

    return __repr__


def _eq_of(names: list[str]) -> Callable[[Any, object], bool]:
    values = _values_of(names)

    def __eq__(self: Any, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        is_equal: bool = values(self) == values(other)
        return is_equal

    return __eq__


def _hash_of(names: list[str]) -> Callable[[Any], int]:
    values = _values_of(names)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _freeze(cls: Any, names: list[str], has_slots: bool) -> None:
    """Refuse assignment and deletion of fields; let objects with slots be pickled nevertheless."""
    fields = frozenset(names)

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in fields:
            message = f"cannot assign to field {name!r}"
            raise dataclasses.FrozenInstanceError(message)
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in fields:
            message = f"cannot delete field {name!r}"
            raise dataclasses.FrozenInstanceError(message)
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__
    if has_slots:
        _define(cls, _getstate_of(names))
        _define(cls, _setstate_of(names))


def _getstate_of(names: list[str]) -> Callable[[Any], list[Any]]:
    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    return __getstate__


def _setstate_of(names: list[str]) -> Callable[[Any, list[Any]], None]:
    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return __setstate__
