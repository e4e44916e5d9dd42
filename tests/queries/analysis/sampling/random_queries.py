"""Random query sets of groups, joins, unions and selections over each other, and random packets.

Fields have few values, so that groups meet, joins match and conditions are sometimes true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from tests.queries.analysis.sampling.plain_answers import Packet

_TERMS = (
    *("srcIP", "destIP", "srcPort", "destPort", "sequence_number"),
    *("srcIP & 0xFFFFFFFE as net", "prefix(destIP, 31) as far", "srcPort / 2 as half"),
    *("srcPort / 3 as third", "srcPort % 6 as rest", "destPort & 3 as low", "srcPort >> 1 as top"),
    *("sequence_number + 1 as following", "srcPort + destPort as both", "len / 100 as size"),
    "srcPort * 0.5 as fraction",
)
_AGGREGATES = (
    *("count(*)", "sum(len)", "max(len)", "min(len)", "avg(len)", "count_distinct(srcIP)"),
    *("count_dups(sequence_number)", "or_aggr(flags)", "count_distinct(destPort)"),
)
_OF_COLUMNS = ("sum({})", "max({})", "count(*)", "avg({})", "count_distinct({})", "min({})")
_PAIRS = (
    ("srcIP", "srcIP"),
    ("srcIP", "destIP"),
    ("destIP", "srcIP"),
    ("destIP", "destIP"),
    ("srcPort", "destPort"),
    ("srcPort", "srcPort"),
    ("sequence_number + 1", "ack_number"),
    ("sequence_number + 1", "sequence_number"),
    ("srcPort / 2", "destPort / 2"),
)
_ADDRESSES = ("srcIP", "destIP", "net", "far")
_KINDS = (
    "JOIN",
    "OUTER_JOIN",
    "LEFT_OUTER_JOIN",
    "RIGHT_OUTER_JOIN",
    "LEFT JOIN",
    "FULL JOIN",
    "RIGHT JOIN",
)

_WINDOWS = (
    "[RANGE '2 min' SLIDE '1 min']",
    "[RANGE '1 min' SLIDE '2 min']",
    "[SLICES '1 min', '2 min']",
)


def packets(source: random.Random) -> list[Packet]:
    """Return random packets."""
    return [
        {
            "time": source.randrange(3) * 60 + source.randrange(2),
            "protocol": source.choice((6, 6, 6, 17)),
            "srcIP": 0xFFFF << 32 | source.randrange(1, 5),
            "destIP": 0xFFFF << 32 | source.randrange(1, 5),
            "srcPort": source.randrange(8),
            "destPort": source.randrange(8),
            "sequence_number": source.randrange(5),
            "ack_number": source.randrange(5),
            "flags": source.randrange(8),
            "len": source.randrange(60, 400),
        }
        for _ in range(source.randrange(20, 60))
    ]


def query_set(source: random.Random, *, by_tuples: bool) -> str:
    """Return the text of a query set; ``by_tuples`` asks for that method."""
    queries: list[tuple[str, str, list[str], list[str]]] = []
    for number in range(source.randrange(1, 6)):
        name = f"q{number}"
        grouped = [each for each in queries if each[2] or each[3]]
        choice = source.random()
        if not grouped or choice < 0.3:
            text, keys, results = _groups(source)
        elif choice < 0.6:
            text, keys, results = _groups_of(source, source.choice(grouped[-2:]))
        elif choice < 0.7:
            text, keys, results = _join_of_packets(source)
        else:
            text, keys, results = _join_of(source, source.choice(grouped), source.choice(grouped))
        queries.append((name, text, keys, results))
    hint = "sampling 'tuples'; " if by_tuples else ""
    return ";\n".join(
        f"DEFINE {{ query_name '{name}'; {hint}}} {text}" for name, text, _, _ in queries
    )


def query_set_over_time(source: random.Random) -> str:
    """Return the text of a query set with windows and groups that live across epochs."""
    below, keys, _ = _groups(source)
    texts = [below]
    for _ in range(source.randrange(1, 3)):
        of_packets = source.random() < 0.5
        terms = source.sample(_TERMS, source.randrange(3)) if of_packets else []
        kept = [term.rpartition(" as ")[2] for term in terms]
        if not of_packets:
            kept = terms = source.sample(keys, source.randrange(len(keys) + 1))
        name, column = ("TCP", "len") if of_packets else ("q0", "r0")
        call = source.choice(_OF_COLUMNS).format(column)
        if source.random() < 0.5:
            window = source.choice(_WINDOWS)
            grouped = f"GROUP BY {', '.join(terms)}" if terms else ""
            text = f"SELECT {', '.join(['window_end as tb', *kept, f'{call} as r0'])} "
            text += f"FROM {name} {window} {grouped}"
        else:
            running = source.choice(("running_sum({})", "running_count(*)", "moving_sum({}, 2)"))
            epoch = "time/60 as tb" if of_packets else "tb"
            shown = ["tb", *kept, f"{call} as r0", f"{running.format(column)} as r1"]
            closing = source.choice(
                ("count(*) = 0", "count(*) > 3", f"running_sum({column}) > 400")
            )
            text = f"SELECT {', '.join(shown)} FROM {name} "
            text += f"GROUP BY {', '.join([epoch, *terms])} CLOSING_WHEN {closing}"
        texts.append(text)
        if source.random() < 0.6:
            part = ["tb", *source.sample(kept, source.randrange(len(kept) + 1))]
            above = source.choice(_OF_COLUMNS).format("r0")
            read = f"q{len(texts) - 1}"
            texts.append(
                f"SELECT {', '.join(part)}, {above} as r0 FROM {read} GROUP BY {', '.join(part)}"
            )
    return ";\n".join(
        f"DEFINE {{ query_name 'q{number}'; }} {text}" for number, text in enumerate(texts)
    )


def _groups(source: random.Random) -> tuple[str, list[str], list[str]]:
    terms = source.sample(_TERMS, source.randrange(4))
    calls = source.sample(_AGGREGATES, source.randrange(1, 3))
    keys = [term.rpartition(" as ")[2] for term in terms]
    results = [f"r{number}" for number in range(len(calls))]
    shown = source.sample(keys, source.randrange(len(keys) + 1)) if keys else []
    outputs = ["tb", *shown, *(f"{c} as {r}" for c, r in zip(calls, results, strict=True))]
    where = source.choice(("", "", " WHERE len > 150", " WHERE srcPort < 5"))
    having = source.choice(("", "", "", " HAVING count(*) > 2", " HAVING tb > 0"))
    text = f"SELECT {', '.join(outputs)} FROM TCP{where} GROUP BY "
    return text + ", ".join(["time/60 as tb", *terms]) + having, shown, results


def _groups_of(
    source: random.Random, below: tuple[str, str, list[str], list[str]]
) -> tuple[str, list[str], list[str]]:
    name, _, keys, results = below
    kept = source.sample(keys, source.randrange(len(keys) + 1))
    column = source.choice([*keys, *results])
    call = source.choice(_OF_COLUMNS).format(column)
    if column in _ADDRESSES and not call.startswith("count"):
        call = "count(*)"
    where = source.choice(("", "", f" WHERE {column} IS NOT NULL", " WHERE tb > 0"))
    text = f"SELECT {', '.join(['tb', *kept])}, {call} as r0 FROM {name}{where} GROUP BY "
    return text + ", ".join(["tb", *kept]), kept, ["r0"]


def _join_of_packets(source: random.Random) -> tuple[str, list[str], list[str]]:
    pairs = source.sample(_PAIRS, source.randrange(1, 4))
    conditions = ["S.time = A.time", *(f"S.{one} = A.{other}" for one, other in pairs)]
    terms = {name: f"S.{name}" for name in ("srcIP", "destIP", "srcPort")}
    terms |= {"half": "S.srcPort / 2", "following": "S.sequence_number + 1"}
    terms |= {"both": "S.srcPort + A.destPort", "other": "A.srcPort"}
    kept = source.sample(sorted(terms), source.randrange(3))
    outputs = ", ".join(["S.time/60 as tb", *(f"{terms[name]} as {name}" for name in kept)])
    text = f"SELECT {outputs}, count(*) as r0 FROM TCP S, TCP A WHERE {' and '.join(conditions)}"
    return f"{text} GROUP BY {outputs}", kept, ["r0"]


def _join_of(
    source: random.Random,
    left: tuple[str, str, list[str], list[str]],
    right: tuple[str, str, list[str], list[str]],
) -> tuple[str, list[str], list[str]]:
    kind = source.choice(_KINDS)
    pairs = [
        (one, other)
        for one in left[2]
        for other in right[2]
        if (one in _ADDRESSES) == (other in _ADDRESSES)
    ]
    chosen = source.sample(pairs, min(len(pairs), source.choice((0, 1, 1, 2, 2, 3))))
    numbers = [key for key in left[2] if key not in _ADDRESSES]
    if numbers and source.random() < 0.2:
        chosen.append((source.choice(numbers), right[3][0]))
    conditions = ["A.tb = B.tb", *(f"A.{one} = B.{other}" for one, other in chosen)]
    conditions += source.choice(([], [], [f"A.{left[3][0]} > B.{right[3][0]}"]))
    keys = source.sample(left[2], source.randrange(len(left[2]) + 1))
    # In SQL's spelling the time of a missing side is NULL, by which nothing can be grouped.
    outputs = [
        f"{'B' if kind == 'RIGHT JOIN' else 'A'}.tb as tb",
        *(f"A.{key} as {key}" for key in keys),
    ]
    outputs += [f"A.{left[3][0]} as r0", f"B.{right[3][0]} as r1"]
    text = f"SELECT {', '.join(outputs)} FROM {left[0]} A {kind} {right[0]} B "
    is_sql = kind in ("LEFT JOIN", "FULL JOIN", "RIGHT JOIN")
    return text + ("ON " if is_sql else "WHERE ") + " and ".join(conditions), keys, ["r0", "r1"]
