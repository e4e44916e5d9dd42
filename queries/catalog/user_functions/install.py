"""User code in the catalog's tables, for this process.

Every process that runs a program installs the program's files first: the command line before it
compiles, the capture daemon and the HFTA job before their first look-up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.queries.catalog.aggregates import AGGREGATES, AggregateEntry
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.running import RUNNING
from gscope.queries.catalog.sampling.stateful import STATEFUL, StatefulEntry
from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter, always, by, loses
from gscope.queries.catalog.user import AggregateFacts, ScalarFacts, StateFacts, facts_of
from gscope.queries.catalog.user_functions.calls import UserFold, UserScalar
from gscope.queries.catalog.user_functions.files import load_module
from gscope.queries.catalog.user_functions.states import UserState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from fractions import Fraction

    from gscope.queries.catalog.scalar.entry import Gain
    from gscope.queries.catalog.user_functions.files import UserFile
    from gscope.queries.expressions.expressions import Expression

UserCode = UserScalar | UserFold | UserState

_NAME = re.compile("[a-z_][a-z0-9_]*")
_INSTALLED: dict[UserFile, tuple[UserCode, ...]] = {}


def install(files: Iterable[UserFile], taken: Collection[str] = ()) -> tuple[UserCode, ...]:
    """Enter the declarations of ``files`` into the tables; those already there stay unchanged.

    Args:
        files: files of user code.
        taken: further names that user functions cannot have.

    Returns:
        The newly entered code.

    Raises:
        UsageError: a file cannot be executed, declares nothing, or declares a name that is taken.
    """
    entered: list[UserCode] = []
    for file in files:
        if file in _INSTALLED:
            continue
        made = _declared(file)
        for code in made:
            _check_name(code, taken)
            if isinstance(code, UserScalar):
                FUNCTIONS[code.facts.name] = _scalar_entry(code)
            elif isinstance(code, UserState):
                STATEFUL.update(_stateful_entries(code))
            else:
                AGGREGATES[code.facts.name] = _aggregate_entry(code)
            entered.append(code)
            _INSTALLED[file] = (*_INSTALLED.get(file, ()), code)
    return tuple(entered)


def uninstall() -> None:
    """Remove all user code from the tables."""
    for code in installed():
        if isinstance(code, UserState):
            for name in _names(code):
                STATEFUL.pop(name, None)
            continue
        table: dict[str, FunctionEntry] | dict[str, AggregateEntry] = (
            FUNCTIONS if isinstance(code, UserScalar) else AGGREGATES
        )
        table.pop(code.facts.name, None)
    _INSTALLED.clear()


def installed() -> tuple[UserCode, ...]:
    """Return all user code in the tables."""
    return tuple(code for made in _INSTALLED.values() for code in made)


def by_file() -> Mapping[UserFile, tuple[UserCode, ...]]:
    """Return all user code in the tables by the file that declares it."""
    return dict(_INSTALLED)


def _declared(file: UserFile) -> tuple[UserCode, ...]:
    """Return what a file declares itself, without what it imports."""
    module = load_module(file)
    made: list[UserCode] = []
    for attribute, value in vars(module).items():
        facts = facts_of(value)
        if getattr(value, "__module__", None) != module.__name__ or attribute != value.__name__:
            continue
        if isinstance(facts, ScalarFacts):
            made.append(UserScalar(file, attribute, facts))
        elif isinstance(facts, AggregateFacts):
            made.append(UserFold(file, attribute, facts))
        elif isinstance(facts, StateFacts):
            made.append(UserState(file, attribute, facts))
    if not made:
        message = (
            f"{file.path} declares nothing; put @function(…), @aggregate(…) or @stateful of "
            "gscope.queries.catalog.user before what queries may use"
        )
        raise UsageError(message)
    return tuple(made)


def _names(code: UserCode) -> tuple[str, ...]:
    """Return the names that queries can call."""
    if isinstance(code, UserState):
        return tuple(facts.name for _, facts in code.facts.calls)
    return (code.facts.name,)


def _check_name(code: UserCode, taken: Collection[str]) -> None:
    for name in _names(code):
        _check_one(name, code, taken)


def _check_one(name: str, code: UserCode, taken: Collection[str]) -> None:
    path = code.file.path
    if not _NAME.fullmatch(name):
        message = f"{path} declares {name!r}, which is not a name that a query can use"
        raise UsageError(message)
    other = next((c for c in installed() if name in _names(c)), None)
    if other is not None:
        message = f"{path} declares {name}, which {other.file.path} declares as well"
        raise UsageError(message)
    tables = (FUNCTIONS, AGGREGATES, RUNNING, STATEFUL, taken)
    if any(name in table for table in tables):
        message = f"{path} declares {name}, which gscope already defines; choose another name"
        raise UsageError(message)


def _scalar_entry(code: UserScalar) -> FunctionEntry:
    facts = code.facts
    return FunctionEntry(
        facts.name,
        tuple(Parameter(kind) for kind in facts.parameters),
        facts.returns,
        code,
        is_strict=not facts.accepts_null,
        makes_null=always if facts.is_nullable else _never,
        cost=facts.cost,
        is_lfta_safe=facts.is_lfta_safe,
        gains=tuple(_gain(stretch) for stretch in facts.monotone),
        is_pure=facts.is_pure,
    )


def _stateful_entries(code: UserState) -> dict[str, StatefulEntry]:
    """Return the entries of the methods of a class, which share its state."""
    return {
        facts.name: StatefulEntry(
            facts.name,
            f"{code.facts.name} of {code.file.path}",
            facts.parameters,
            facts.returns,
            f"declared in {code.file.path}.",
            code=code,
        )
        for _, facts in code.facts.calls
    }


def _gain(stretch: Fraction | None) -> Gain:
    return loses if stretch is None else by(stretch.numerator, stretch.denominator)


def _never(_: Sequence[Expression]) -> bool:
    return False


def _aggregate_entry(code: UserFold) -> AggregateEntry:
    facts = code.facts
    return AggregateEntry(
        facts.name,
        frozenset({facts.argument}),
        facts.returns,
        code,
        partials=(),
        finish=_high_only(facts.name),
        lfta_types=frozenset(),
        doc=f"declared in {code.file.path}.",
        makes_null=facts.is_nullable,
        survives_sampling=facts.is_estimable,
    )


def _high_only(name: str) -> Callable[..., None]:
    def finish(*_: object) -> None:
        message = f"{name} has no partials"
        raise UsageError(message)

    return finish
