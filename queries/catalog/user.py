"""The names that a file of user code imports: ``function``, ``aggregate``, ``stateful``, ``call``.

They declare the facts that gscope needs.

    from gscope.queries.catalog.user import aggregate, function

    @function("INT", returns="INT", lfta_safe=True, monotone=[Fraction(1, 300)], cost=5)
    def five_minutes(time):
        return time // 300

Values are plain Python values: INT, TIMESTAMP, INTERVAL (nanoseconds) and MAC are ``int``, FLOAT
``float``, BOOL ``bool``, STRING ``bytes``, and IP the 128 bits of the address as ``int`` (IPv4 as
``::ffff:a.b.c.d``, that address of an IPv6 header as ``::fffe:a.b.c.d``). NULL is None.
"""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from gscope.errors import UsageError
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Stretch = int | float | Fraction | None

F = TypeVar("F", bound="Callable[..., Any]")
C = TypeVar("C", bound=type)

_FACTS = "__gscope_facts__"
_TYPES = {kind.value: kind for kind in GsqlType if kind is not GsqlType.NULL}
_LFTA_TYPES = frozenset(_TYPES.values()) - {GsqlType.STRING, GsqlType.IP}
_NEEDED = ("initialize", "iterate", "output")


@dataclass(frozen=True, slots=True)
class ScalarFacts:
    """The declared facts of a scalar function; see ``function``."""

    name: str
    parameters: tuple[GsqlType, ...]
    returns: GsqlType
    is_lfta_safe: bool
    monotone: tuple[Fraction | None, ...]
    is_pure: bool
    cost: int
    is_nullable: bool
    accepts_null: bool


@dataclass(frozen=True, slots=True)
class AggregateFacts:
    """The declared facts of an aggregate; see ``aggregate``."""

    name: str
    argument: GsqlType
    returns: GsqlType
    is_nullable: bool
    is_estimable: bool
    can_merge: bool


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The declared facts of a method that queries call; see ``call``."""

    name: str
    parameters: tuple[GsqlType, ...]
    returns: GsqlType
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class StateFacts:
    """The declared facts of a class of states; see ``stateful``."""

    name: str
    calls: tuple[tuple[str, CallFacts], ...]


Facts = ScalarFacts | AggregateFacts | StateFacts


def function(
    *types: str,
    returns: str,
    name: str = "",
    lfta_safe: bool = False,
    monotone: Sequence[Stretch] = (),
    pure: bool = True,
    cost: int = 100,
    nullable: bool = False,
    accepts_null: bool = False,
) -> Callable[[F], F]:
    """Declare a scalar function.

    Args:
        types: the types of its parameters, by their GSQL names, in order.
        returns: the type of its result.
        name: the name that queries use, by default the Python name; case does not matter.
        lfta_safe: whether it may run in the capture daemon, compiled by numba. Then it takes and
            returns only numbers and truth values, calls no other function of the file, never raises
            and never returns None. Integers there have 64 bits and wrap; on Spark they are Python's
            until the result wraps, so that an intermediate value of more bits differs between both
            levels.
        monotone: for each parameter, the factor by which a step of it is stretched at most while
            the others stand still: 1 keeps it, Fraction(1, 60) makes a minute of seconds, a
            negative number reverses the order, 0 means that the result ignores the parameter, None
            that no order is kept. By default the result is not temporal. It is tested on samples
            when the file is loaded.
        pure: whether equal arguments give equal results.
        cost: the cost of one call, in additions.
        nullable: whether the result may be None.
        accepts_null: whether it is called with None too; otherwise NULL gives NULL without a call.

    Raises:
        UsageError: the facts contradict each other or the function.
    """

    def declare(made: F) -> F:
        facts = ScalarFacts(
            name=(name or made.__name__).lower(),
            parameters=tuple(_type(each) for each in types),
            returns=_type(returns),
            is_lfta_safe=lfta_safe,
            monotone=tuple(None if g is None else Fraction(g) for g in monotone),
            is_pure=pure,
            cost=cost,
            is_nullable=nullable,
            accepts_null=accepts_null,
        )
        _check_scalar(made, facts)
        setattr(made, _FACTS, facts)
        return made

    return declare


def aggregate(
    argument: str,
    *,
    returns: str,
    name: str = "",
    nullable: bool = False,
    estimable: bool = False,
) -> Callable[[C], C]:
    """Declare an aggregate: a class, one instance of which is the state of one group.

    gscope calls ``initialize()`` first, ``iterate(value)`` for each value that is not NULL, in an
    order that the class must not depend on, ``output()`` for the result, and last ``destroy()``, if
    the class has it, whatever has failed before. With ``merge(other)``, which adds the state of
    another part of the group, a group may be computed in parts; it is tested on samples when the
    file is loaded. A group without a value gives NULL. Aggregates run on Spark; an LFTA ships the
    rows that they need.

    Args:
        argument: the type of its argument.
        returns: the type of its result.
        name: the name that queries use, by default that of the class; case does not matter.
        nullable: whether the result may be None.
        estimable: whether a uniform sample of the values estimates the result without a factor, as
            it does an average or a ratio; otherwise a sample must keep groups whole.

    Raises:
        UsageError: a type is unknown, or a method is missing.
    """

    def declare(made: C) -> C:
        missing = [method for method in _NEEDED if not callable(getattr(made, method, None))]
        if missing:
            message = (
                f"{made.__name__} has no method {missing[0]};"
                f" an aggregate needs {', '.join(_NEEDED)}"
            )
            raise UsageError(message)
        facts = AggregateFacts(
            name=(name or made.__name__).lower(),
            argument=_type(argument),
            returns=_type(returns),
            is_nullable=nullable,
            is_estimable=estimable,
            can_merge=callable(getattr(made, "merge", None)),
        )
        setattr(made, _FACTS, facts)
        return made

    return declare


def call(*types: str, returns: str, name: str = "") -> Callable[[F], F]:
    """Declare a method of a stateful class as a function that queries call.

    Args:
        types: the types of its parameters behind ``self``, by their GSQL names, in order:
            numbers, times and truth values.
        returns: the type of its result, one of the same types.
        name: the name that queries use, by default that of the method; case does not matter.

    Raises:
        UsageError: a type is unknown or not one of these.
    """

    def declare(made: F) -> F:
        kinds = (*(_type(each) for each in types), _type(returns))
        wide = [kind for kind in kinds if kind not in _LFTA_TYPES]
        if wide:
            message = (
                f"{made.__name__} has the type {wide[0].value}, which no stateful function takes"
            )
            raise UsageError(message)
        facts = CallFacts((name or made.__name__).lower(), kinds[:-1], kinds[-1], is_nullable=False)
        setattr(made, _FACTS, facts)
        return made

    return declare


def stateful(made: C) -> C:
    """Declare a class of states for the sampling operator.

    Each supergroup of each window has one instance. gscope calls ``initialize(before)`` first, with
    the instance of the supergroup in the window before, or None; then the methods that are declared
    with ``call``, tuple by tuple; and ``final(live)``, if the class has it, with the number of
    groups at the end of the window, before HAVING. What an instance keeps must be JSON values:
    numbers, texts, lists and dictionaries. They are written to the folder of the run.

    Raises:
        UsageError: the class has no ``initialize``, or no method is declared with ``call``.
    """
    calls = tuple(
        (attribute, facts)
        for attribute, value in vars(made).items()
        if isinstance(facts := getattr(value, _FACTS, None), CallFacts)
    )
    if not callable(getattr(made, "initialize", None)) or not calls:
        message = (
            f"{made.__name__} needs the method initialize, and a method declared with @call(…)"
        )
        raise UsageError(message)
    setattr(made, _FACTS, StateFacts(made.__name__, calls))
    return made


def facts_of(made: object) -> Facts | None:
    """Return what is declared of an object of a user file, None if nothing is."""
    facts = getattr(made, _FACTS, None)
    return facts if isinstance(facts, ScalarFacts | AggregateFacts | StateFacts) else None


def _type(name: object) -> GsqlType:
    kind = _TYPES.get(name.upper()) if isinstance(name, str) else None
    if kind is None:
        message = f"unknown type {name!r}; available: {', '.join(_TYPES)}"
        raise UsageError(message)
    return kind


def _check_scalar(made: Callable[..., Any], facts: ScalarFacts) -> None:
    count = len(facts.parameters)
    if count == 0:
        message = (
            f"{made.__name__} is declared without a parameter; "
            "a function without parameters is a constant"
        )
        raise UsageError(message)
    try:
        inspect.signature(made).bind(*facts.parameters)
    except TypeError as error:
        message = f"{made.__name__} is declared with {count} parameters, but {error}"
        raise UsageError(message) from error
    if facts.monotone and len(facts.monotone) != count:
        message = (
            f"invalid monotone of {made.__name__}: expected one number for each parameter"
            f" ({count}), got {len(facts.monotone)}"
        )
        raise UsageError(message)
    if not facts.is_lfta_safe:
        return
    wide = [kind for kind in (*facts.parameters, facts.returns) if kind not in _LFTA_TYPES]
    if wide:
        message = (
            f"{made.__name__} is declared lfta_safe, but an LFTA cannot compute user functions on "
            f"{wide[0].value}; declare lfta_safe=False"
        )
        raise UsageError(message)
    if facts.is_nullable or facts.accepts_null or not facts.is_pure:
        message = (
            f"{made.__name__} is declared lfta_safe; "
            "then it must be pure, and neither accept nor return None"
        )
        raise UsageError(message)
