"""The list of ``gscope schema --functions``: functions, aggregates and their facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.queries.analysis.typing.calls import BUILDERS
from gscope.queries.analysis.typing.time_calls import UNIT_FUNCTIONS
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.running import DISTINCT_VALUES, RUNNING
from gscope.queries.catalog.sampling.stateful import STATEFUL
from gscope.queries.catalog.sampling.superaggregates import SUPERAGGREGATES
from gscope.queries.catalog.scalar.meanings import FAMILIES, MEANINGS
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.catalog.aggregate.entry import AggregateEntry
    from gscope.queries.catalog.running import RunningEntry
    from gscope.queries.catalog.sampling.stateful import StatefulEntry
    from gscope.queries.catalog.sampling.superaggregates import SuperaggregateEntry

_RENAMED = {
    "strtoip": "string_to_ip",
    "ipv4": "ip_to_int",
    "least": "min_of",
    "greatest": "max_of",
    "umax": "max_of",
    "substring": "substr",
}
_BY_TYPE: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys(
        ("int", "uint", "ushort", "llong", "ullong"),
        ("BOOL|FLOAT|INT|IP|STRING|TIMESTAMP", "INT", "low (no STRING), high"),
    ),
    **dict.fromkeys(("timestamp", "timeval"), ("INT|TIMESTAMP", "TIMESTAMP", "low, high")),
    "date_trunc": ("'unit', INT|TIMESTAMP", "TIMESTAMP", "low, high"),
    "time_bucket": ("'length', INT|TIMESTAMP", "TIMESTAMP", "low, high"),
    **dict.fromkeys(UNIT_FUNCTIONS, ("INT|TIMESTAMP", "TIMESTAMP", "low, high")),
    "to_timestamp": ("FLOAT|INT", "TIMESTAMP", "low, high"),
    **dict.fromkeys(("abs", "floor", "ceil", "round"), ("FLOAT|INT", "as given", "low, high")),
    # only LFTAs see tuples in the order of the packets
    **dict.fromkeys(("increasing", "decreasing"), ("INT|TIMESTAMP", "as given", "low")),
    "banded": ("INT|TIMESTAMP, n", "as given", "low"),
    "if_else": ("BOOL, any, any", "as given", "low, high"),
    "h": ("any", "INT", "low (no FLOAT, no STRING), high"),
    "nullif": ("any, any", "as given", "low (no STRING), high"),
    "mod": ("FLOAT|INT, FLOAT|INT", "as given", "low, high"),
    "concat": ("any, …", "STRING", "high"),
    "bool": ("BOOL|INT", "BOOL", "low, high"),
    "float": ("BOOL|FLOAT|INT", "FLOAT", "low, high"),
    "string": ("BOOL|FLOAT|INT|IP|MAC|STRING|TIMESTAMP", "STRING", "high"),
}
"""Functions with one catalog entry for each type: what they take and return, and where they run."""

_USERS = "user code"
_ANY = frozenset(GsqlType) - {GsqlType.NULL}


def described_functions() -> dict[str, list[dict[str, Any]]]:
    """Return aggregates of all kinds and functions: names, types, levels, meanings."""
    return {
        "aggregates": [_aggregate(entry) for entry in AGGREGATES.values()],
        "running aggregates": [_running(entry) for entry in RUNNING.values()],
        "superaggregates": [_superaggregate(*each) for each in SUPERAGGREGATES.items()],
        "stateful functions": [_stateful(entry) for entry in STATEFUL.values()],
        "functions": [
            _scalar(name, family) for family, names in _families().items() for name in names
        ],
    }


def function_lines() -> Iterator[str]:
    """Yield the same as text, scalar functions by family."""
    groups = described_functions()
    scalars = groups.pop("functions")
    for family in _families():
        groups[f"functions: {family}"] = [one for one in scalars if one["family"] == family]
    for number, (group, described) in enumerate(groups.items()):
        yield f"{chr(10) if number else ''}{group}"
        heads = [f"{one['name']}({one['takes']})" for one in described]
        width = max(map(len, heads))
        levels = max(len(one["levels"]) for one in described)
        for head, one in zip(heads, described, strict=True):
            facts = f"{one['returns']:<9}  {one['levels']:<{levels}}  {one['is']}"
            yield f"  {head:<{width}}  {facts}".rstrip()


def _aggregate(entry: AggregateEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "takes": _parameters(entry),
        "returns": _result(entry.result),
        "levels": _levels(entry.argument_types, entry.lfta_types),
        "survives_sampling": entry.survives_sampling,
        "is": f"{entry.doc}{f' Error: {entry.error}.' if entry.error else ''}",
    }


def _running(entry: RunningEntry) -> dict[str, Any]:
    low = [_low_types(name) for name in entry.inputs]
    return {
        "name": entry.name,
        "takes": _parameters(entry),
        "returns": _result(entry.result),
        "levels": _levels(entry.argument_types, frozenset.intersection(*low)) if low else "high",
        "is": entry.doc,
    }


def _superaggregate(name: str, entry: SuperaggregateEntry) -> dict[str, Any]:
    types = "|".join(sorted(kind.value for kind in entry.types)) or "any"
    takes = f"* or {types}" if entry.takes_star else types
    return {
        "name": f"{name}$",
        "takes": f"{takes}, k" if entry.has_rank else takes,
        "returns": _result(entry.returns),
        "levels": "high",
        "is": entry.doc,
    }


def _stateful(entry: StatefulEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "takes": ", ".join(kind.value for kind in entry.parameters),
        "returns": entry.returns.value,
        "levels": "high",
        "is": entry.doc,
    }


def _families() -> dict[str, list[str]]:
    """Return the names of all functions by family, those of user code last."""
    users = sorted(BUILDERS.keys() - MEANINGS.keys())
    return {
        **{family: list(names) for family, names in FAMILIES.items()},
        **({_USERS: users} if users else {}),
    }


def _scalar(name: str, family: str) -> dict[str, Any]:
    if name in _BY_TYPE:
        takes, returns, levels = _BY_TYPE[name]
    else:
        entry = FUNCTIONS[_RENAMED.get(name, name)]
        takes = ", ".join(p.type.value if p.type else "any" for p in entry.parameters)
        takes += ", …" if entry.repeats else ""
        returns = _result(entry.result)
        levels = "low, high" if entry.is_lfta_safe else "high"
    return {
        "name": name,
        "family": family,
        "takes": takes,
        "returns": returns,
        "levels": levels,
        "is": MEANINGS.get(name, ""),
    }


def _parameters(entry: AggregateEntry | RunningEntry) -> str:
    types = entry.argument_types
    if not types:
        return ""
    value = "any" if types == _ANY else "|".join(sorted(t.value for t in types))
    if len(types) > len(_ANY) // 2 and types != _ANY:
        value = "any but " + "|".join(sorted(t.value for t in _ANY - types))
    star = "* or " if entry.takes_star else ""
    return ", ".join([star + value, *(constant.name for constant in entry.constants)])


def _result(kind: GsqlType | None) -> str:
    return "as given" if kind is None else kind.value


def _levels(types: frozenset[GsqlType], low: frozenset[GsqlType]) -> str:
    """Return where tuples are reduced: partially in the LFTA, or only in the HFTA."""
    if not low:
        return "high"
    missing = "|".join(sorted(t.value for t in types - low))
    return f"low (no {missing}), high" if missing else "low, high"


def _low_types(name: str) -> frozenset[GsqlType]:
    """Return the types of which an LFTA folds an input of running aggregates; sets join its key."""
    entry = AGGREGATES["count_distinct" if name == DISTINCT_VALUES else name]
    return entry.lfta_types
