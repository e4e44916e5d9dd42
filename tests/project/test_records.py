"""``gscope.records.dataclass`` against the standard library's decorator."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
import threading
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
SETTINGS = [
    {"frozen": frozen, "slots": slots, "eq": eq}
    for frozen in (False, True)
    for slots in (False, True)
    for eq in (False, True)
]


class Plain:
    """Fields of every kind."""

    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list)
    d: int = field(default=4, compare=False)
    e: str = field(default="e", repr=False)
    f: int = field(default=6, kw_only=True)
    g: int = field(default=7, hash=False)


class Later:
    """A field that no argument sets."""

    a: int
    total: int = field(init=False)
    made: list[int] = field(init=False, default_factory=list)
    fixed: int = field(init=False, default=3)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.a + 1)


class Empty:
    """No fields."""


class Single:
    """One field."""

    only: Any


class OwnMethods:
    """Methods that no decorator may replace."""

    a: int

    def __repr__(self) -> str:
        return "own"

    def __hash__(self) -> int:
        return 5


class OwnEquality:
    """Its own equality only."""

    a: int

    def __eq__(self, other: object) -> bool:
        return True


def _outcome(call: Callable[[Any], Any], made: Any) -> object:
    """What ``call`` returns for the class ``made``, or the error it raises."""
    try:
        return repr(call(made))
    except Exception as error:
        return type(error), str(error)


def _have_same_hash(first: object, second: object) -> bool:
    return hash(first) == hash(second)


def _twins(body: type, settings: dict[str, bool]) -> tuple[Any, Any]:
    """A class by each decorator."""
    names = {n: v for n, v in vars(body).items() if n not in ("__dict__", "__weakref__")}
    return tuple(
        each(**settings)(type("Twin", (), copy.copy(names)))
        for each in (dataclasses.dataclass, dataclass)
    )  # type: ignore[return-value]


CALLS: dict[type, list[Callable[[Any], Any]]] = {
    Plain: [
        lambda c: c(1),
        lambda c: c(1, "x", [2], 3, "y", f=4),
        lambda c: c(a=1, c=[5]),
        lambda c: c(),
        lambda c: c(1, z=2),
        lambda c: c(1, "x", [2], 3, "y", 4, 5, 6),
        lambda c: c(1) == c(1),
        lambda c: c(1) == c(2),
        lambda c: c(1, d=1) == c(1, d=2),
        lambda c: c(1, g=1) == c(1, g=2),
        lambda c: c(1) == 1,
        lambda c: c(1) != c(1),
        lambda c: c(1).c is c(1).c,
        lambda c: _have_same_hash(c(1, c=(1,)), c(1, c=(1,), d=2, g=3)),
        lambda c: _have_same_hash(c(1, c=(1,)), c(2, c=(1,))),
        lambda c: isinstance(hash(c(1, c=[])), int),
        lambda c: setattr(c(1), "a", 2),
        lambda c: delattr(c(1), "a"),
        lambda c: dataclasses.replace(c(1), b="new"),
        lambda c: dataclasses.asdict(c(1)),
        lambda c: dataclasses.astuple(c(1)),
        lambda c: copy.copy(c(1)),
        lambda c: copy.deepcopy(c(1, c=[[1]])),
        lambda c: c.__match_args__,
        lambda c: (c.__doc__, c.__name__, c.__qualname__, c.__module__),
        lambda c: getattr(c, "__slots__", None),
        lambda c: [(f.name, f.type, f.default, f.init, f.kw_only) for f in dataclasses.fields(c)],
        lambda c: c(1).__init__(9),
    ],
    Later: [
        lambda c: c(1),
        lambda c: c(1) == c(1),
        lambda c: c(1).made is c(1).made,
        lambda c: c(1, 2),
        lambda c: dataclasses.replace(c(1), a=2),
        lambda c: dataclasses.replace(c(1), total=2),
    ],
    Empty: [
        lambda c: c(),
        lambda c: c() == c(),
        lambda c: _have_same_hash(c(), c()),
        lambda c: c(1),
    ],
    Single: [
        lambda c: c(1),
        lambda c: c(1) == c(1),
        lambda c: c((1, 2)) == c((1, 3)),
        lambda c: _have_same_hash(c(1), c(1)),
    ],
    OwnMethods: [lambda c: c(1), lambda c: hash(c(1)), lambda c: c(1) == c(1)],
    OwnEquality: [lambda c: c(1) == c(2), lambda c: _have_same_hash(c(1), c(1))],
}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("body", CALLS)
def test_a_record_behaves_as_a_data_class_of_the_standard_library(
    body: type, settings: dict[str, bool]
) -> None:
    for number, call in enumerate(CALLS[body]):
        standard, record = _twins(body, settings)
        assert _outcome(call, record) == _outcome(call, standard), number


@dataclass(frozen=True, slots=True)
class Pickled:
    a: int
    b: tuple[str, ...] = ()


@dataclass(frozen=True)
class Base:
    a: int


@dataclass(frozen=True)
class Derived(Base):
    b: int = 2


class Outer(Base):
    """A class whose objects have attributes beside the fields."""


@dataclass(slots=True)
class Cyclic:
    other: Any = None


def test_frozen_records_with_slots_can_be_pickled() -> None:
    made = Pickled(1, ("x",))
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_record_inherits_fields_and_guards_them() -> None:
    assert (Derived(1), Derived(1, 3)) == (Derived(a=1, b=2), Derived(a=1, b=3))
    assert Derived(1) != Base(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        Derived(1).a = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'b'"):
        del Derived(1).b
    outer: Any = Outer(1)
    outer.more = 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        outer.a = 2


def test_the_representation_of_a_record_that_contains_itself_ends() -> None:
    cyclic = Cyclic()
    cyclic.other = cyclic
    assert repr(cyclic) == "Cyclic(other=...)"


def test_threads_may_make_the_first_objects_at_the_same_time() -> None:
    for _ in range(20):
        made: Any = dataclass(frozen=True)(type("Twin", (), {"__annotations__": {"a": "int"}}))
        barrier = threading.Barrier(4)
        found: list[object] = []

        def make(made: Any = made, barrier: Any = barrier, found: Any = found) -> None:
            barrier.wait()
            found.append(made(1))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert found == [made(1)] * 4


def test_every_data_class_of_gscope_is_a_record() -> None:
    rooms = ("capture", "cli", "engine", "queries")
    others = [
        str(path.relative_to(ROOT))
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        if re.search(
            r"^from dataclasses import .*\bdataclass\b|dataclasses\.dataclass\(",
            path.read_text(),
            re.M,
        )
    ]
    assert others == []
