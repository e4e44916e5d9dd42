"""Random well-typed expressions over a scope of leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.differential import addresses
from tests.differential.expressions import value_of
from tests.differential.syntax import Expression, Field, Type, column, literal
from tests.differential.traffic import Known

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_INT, _FLOAT, _BOOL, _STRING = Type.INT, Type.FLOAT, Type.BOOL, Type.STRING
_IP, _TIMESTAMP, _INTERVAL = Type.IP, Type.TIMESTAMP, Type.INTERVAL

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
LARGE = (2**63 - 1, 2**62, -(2**62), -(2**63) + 1, 2654435761, 2**32 + 1, 10**18, 0x9E3779B97F4A7C1)
"""Numbers with which arithmetic overflows."""

_SECOND_NS = 10**9
_START = 1_700_000_000


@dataclass(slots=True)
class Grower:
    """Grows expressions.

    Attributes:
        leaves: what expressions stand on, by type.
        aggregate: makes an aggregate of a type, None where none may stand or there is none of the
            type.
    """

    random: Random
    leaves: list[Expression]
    aggregate: Callable[[Type], Expression | None] = lambda _: None
    small: list[Expression] = field(default_factory=list)
    values: Known = field(default_factory=Known)

    @classmethod
    def over(cls, random: Random, values: Known, *inputs: tuple[Field, ...]) -> Grower:
        """Over the columns of inputs."""
        leaves = [column(f, side) for side, fields in enumerate(inputs) for f in fields]
        small = [
            column(f, side)
            for side, fields in enumerate(inputs)
            for f in fields
            if f.type is _INT and f.is_small
        ]
        return cls(random, leaves, small=small, values=values)

    def grow(self, wanted: Type, depth: int = 2) -> Expression:
        """A random expression of the type ``wanted``, at most ``depth`` operators deep."""
        if depth <= 0 or self.random.random() < 0.25:
            return self.leaf(wanted)
        makers = _MAKERS.get(wanted, ())
        if not makers:
            return self.leaf(wanted)
        return self.random.choice(makers)(self, depth - 1)

    def leaf(self, wanted: Type) -> Expression:
        """A column of the type, an aggregate, or a constant if there is none or by chance."""
        if self.random.random() < 0.6:
            made = self.aggregate(wanted)
            if made is not None:
                return made
        known = [leaf for leaf in self.leaves if leaf.type is wanted]
        if known and (self.random.random() < 0.8 or wanted is Type.MAC):
            return self.random.choice(known)
        return self.constant(wanted)

    def known(self, wanted: Type) -> Expression | None:
        """A column of the type."""
        known = [leaf for leaf in self.leaves if leaf.type is wanted]
        return self.random.choice(known) if known else None

    def condition(self, depth: int = 2) -> Expression:
        """A condition: mostly BOOL, now and then a number that is true unless it is 0."""
        return self.grow(_INT if self.random.random() < 0.08 else _BOOL, depth)

    def constant(self, wanted: Type) -> Expression:
        """A literal that may meet something in the traffic."""
        choose = self.random.choice
        match wanted:
            case Type.INT:
                number = choose(
                    (
                        *self.values.ports,
                        0,
                        1,
                        2,
                        3,
                        6,
                        7,
                        17,
                        60,
                        64,
                        1000,
                        -1,
                        -3,
                        0xFFFFFF00,
                        2**31,
                    )
                    if self.random.random() < 0.93
                    else LARGE
                )
                return integer(number)
            case Type.FLOAT:
                broken = choose((0.5, 2.5, 0.25, 1e3, 0.0, 7.0))
                return literal(repr(broken), _FLOAT, broken)
            case Type.BOOL:
                truth = choose((True, False))
                return literal(str(truth).upper(), _BOOL, truth)
            case Type.STRING:
                text = choose(("GET", "a", "Host", "12", "", "alpha", "H%", "_E%"))
                return literal(f"'{text}'", _STRING, text.encode())
            case Type.IP:
                address = choose(self.values.addresses)
                kind = "IP_VAL" if addresses.is_v4(address) else "IPV6_VAL"
                kind = choose((kind, ""))
                # A plain text is an address only where an address is asked for.
                return literal(f"{kind or 'strtoip'}{_shown(kind, address)}", _IP, address)
            case Type.TIMESTAMP:
                second = _START + choose((0, 10, 50, 100))
                return literal(
                    f"TIMEVAL'{second}.5'", _TIMESTAMP, second * _SECOND_NS + 500_000_000
                )
            case Type.INTERVAL:
                ms = choose((1, 500, 1000, 5000, 60000))
                return literal(f"INTERVAL '{ms} ms'", _INTERVAL, ms * 10**6)
            case Type.MAC:
                mac = choose((0x020000000000, 0x020000000001, 0x020000000100))
                return literal(f"'{mac.to_bytes(6, 'big').hex(':')}'", Type.MAC, mac)

    def dyadic(self) -> Expression | None:
        """A FLOAT with few bits, whose sums are exact in any order."""
        if not self.small:
            return None
        whole = self.random.choice(self.small)
        number = self.random.choice((0.25, 0.5, 2.0))
        return Expression(
            self.random.choice("*/"), _FLOAT, (whole, literal(repr(number), _FLOAT, number))
        )

    def small_integer(self, depth: int) -> Expression:
        """An INT by which to shift or cut."""
        return integer(self.random.randrange(0, 9))


def _shown(kind: str, address: int) -> str:
    text = addresses.shown(address)
    return f"'{text}'" if kind else f"('{text}')"


def integer(number: int) -> Expression:
    return literal(str(number), _INT, number)


def _two(
    type_: Type, ops: tuple[str, ...], left: Type, right: Type
) -> Callable[[Grower, int], Expression]:
    return lambda g, d: Expression(g.random.choice(ops), type_, (g.grow(left, d), g.grow(right, d)))


def _one(type_: Type, ops: tuple[str, ...], argument: Type) -> Callable[[Grower, int], Expression]:
    return lambda g, d: Expression(g.random.choice(ops), type_, (g.grow(argument, d),))


def _with_constant(
    type_: Type, ops: tuple[str, ...], left: Type, right: Type
) -> Callable[[Grower, int], Expression]:
    return lambda g, d: Expression(
        g.random.choice(ops), type_, (g.grow(left, d), g.constant(right))
    )


def _with_small(
    type_: Type, ops: tuple[str, ...], left: Type
) -> Callable[[Grower, int], Expression]:
    return lambda g, d: Expression(
        g.random.choice(ops), type_, (g.grow(left, d), g.small_integer(d))
    )


_EXTREMES = ("min_of", "max_of", "least", "greatest")


def _choice(type_: Type) -> Callable[[Grower, int], Expression]:
    def make(g: Grower, d: int) -> Expression:
        results = [g.grow(type_, d) for _ in range(g.random.choice((2, 2, 3)))]
        kind = g.random.choice(
            ("case", "case", "simple case", "if_else", "coalesce", *_EXTREMES, "nullif")
        )
        if kind == "coalesce" or kind in _EXTREMES:
            return Expression(kind, type_, tuple(results))
        if kind == "nullif":
            return Expression(kind, type_, tuple(results[:2]))
        if g.random.random() < 0.15 and type_ is not Type.MAC:
            results[-1] = literal("NULL", type_, None)
        if kind == "if_else":
            return Expression(kind, type_, (g.condition(d), *results[:2]))
        if kind == "simple case":
            of = g.random.choice((_INT, _IP, _STRING))
            tests = [g.constant(of) for _ in results[:-1]]
            head: tuple[Expression, ...] = (g.grow(of, d),)
        else:
            tests = [g.condition(d) for _ in results[:-1]]
            head = ()
        pairs = [part for pair in zip(tests, results, strict=False) for part in pair]
        return Expression(kind, type_, (*head, *pairs, results[-1]))

    return make


def _comparison(g: Grower, d: int) -> Expression:
    pairs = (
        *((_INT, _INT),) * 4,
        *((_IP, _IP), (_IP, _INT), (_FLOAT, _INT), (_FLOAT, _FLOAT), (_STRING, _STRING)),
        *((_TIMESTAMP, _TIMESTAMP), (_BOOL, _BOOL), (_BOOL, _INT)),
    )
    left, right = g.random.choice(pairs)
    sides = [g.grow(left, d), g.grow(right, d)]
    if left is _IP and right is _INT and sides[1].is_constant:
        # A constant must be the value of an address.
        sides[1] = integer(g.random.choice((0, 0x0A000001, 2**32 - 1)))
    g.random.shuffle(sides)
    return Expression(g.random.choice(COMPARISONS), _BOOL, tuple(sides))


def _distinct(g: Grower, d: int) -> Expression:
    """A comparison for which NULL is a value."""
    kind = g.random.choice((_INT, _INT, _FLOAT, _IP, _STRING, _TIMESTAMP))
    sides = g.grow(kind, d), g.grow(kind, d)
    op = g.random.choice(("is distinct from", "is not distinct from"))
    return Expression(op, _BOOL, sides)


def _span(g: Grower, d: int) -> Expression:
    """How far two times are apart, against an interval."""
    difference = Expression("-", _FLOAT, (g.grow(_TIMESTAMP, 0), g.grow(_TIMESTAMP, 0)))
    return Expression(g.random.choice(COMPARISONS), _BOOL, (difference, g.constant(_INTERVAL)))


def _in_list(g: Grower, d: int) -> Expression:
    kind = g.random.choice((_INT, _INT, _IP, _STRING))
    choices = [g.constant(kind) for _ in range(g.random.randrange(1, 4))]
    if g.random.random() < 0.1:
        choices.append(literal("NULL", kind, None))
    if g.random.random() < 0.2:
        choices.append(g.leaf(kind))
    return Expression(g.random.choice(("in", "not in")), _BOOL, (g.grow(kind, d), *choices))


def _between(g: Grower, d: int) -> Expression:
    kind = g.random.choice((_INT, _INT, _FLOAT, _IP, _TIMESTAMP))
    op = g.random.choice(("between", "not between"))
    return Expression(op, _BOOL, (g.grow(kind, d), g.grow(kind, 0), g.grow(kind, 0)))


def _null_test(g: Grower, d: int) -> Expression:
    kind = g.random.choice((_INT, _FLOAT, _IP, _STRING))
    return Expression(g.random.choice(("is null", "is not null")), _BOOL, (g.grow(kind, d),))


def _pattern(g: Grower, d: int) -> Expression:
    text = g.random.choice(("%a%", "GET%", "_", "H_st%", "%\\\\%", "12", "%", "%\\%%"))
    made = literal(f"'{text}'", _STRING, text.encode())
    return Expression(g.random.choice(("like", "not like")), _BOOL, (g.grow(_STRING, d), made))


def _regex(op: str, type_: Type) -> Callable[[Grower, int], Expression]:
    def make(g: Grower, d: int) -> Expression:
        text = g.random.choice(("[a-z]+", "^GET", "[0-9.]*1", "H.*e", "x|Host:", "^$"))
        pattern = literal(f"'{text}'", _STRING, text.encode())
        return Expression(op, type_, (g.grow(_STRING, d), pattern))

    return make


def _at_offset(g: Grower, d: int) -> Expression:
    """What stands at an offset."""
    offset = g.small_integer(d)
    if g.random.random() < 0.5:
        return Expression("str_match_offset", _BOOL, (offset, g.constant(_STRING), g.leaf(_STRING)))
    byte = integer(g.random.choice((0, 49, 71, 97, 255)))
    return Expression("byte_match_offset", _BOOL, (offset, byte, g.leaf(_STRING)))


def _string_test(g: Grower, d: int) -> Expression:
    op = g.random.choice(("str_match_start", "str_exists_substr"))
    return Expression(op, _BOOL, (g.grow(_STRING, d), g.constant(_STRING)))


def _network(g: Grower, d: int) -> Expression:
    text = g.random.choice(
        (
            *("10.0.0.0/8", "10.0.0.0/30", "0.0.0.0/0", "192.168.1.7/32"),
            *("2001:db8::/32", "::/0", "::/64", "::ffff:0:0/96", "::ffff:10.0.0.0/104"),
        )
    )
    return Expression(
        "in_net", _BOOL, (g.grow(_IP, d), literal(f"'{text}'", _STRING, text.encode()))
    )


def _prefix(g: Grower, d: int) -> Expression:
    lengths = (
        integer(g.random.choice((0, 8, 24, 31, 32))),
        integer(g.random.choice((0, 32, 95, 96, 104, 128))),
    )
    return Expression("prefix", _IP, (g.grow(_IP, d), *lengths))


def _not_negative_root(g: Grower, d: int) -> Expression:
    return Expression("sqrt", _FLOAT, (Expression("abs", _FLOAT, (g.grow(_FLOAT, d),)),))


def _ratio(g: Grower, d: int) -> Expression:
    """Of integers; the divisor must be no constant."""
    below = g.grow(_INT, d)
    if below.is_constant:
        return Expression("FLOAT", _FLOAT, (g.grow(_INT, d),))
    return Expression("/", _FLOAT, (g.grow(_INT, d), below))


def _computed_constant(g: Grower, d: int) -> Expression:
    """Division by a constant that is computed."""
    sum_ = Expression("+", _INT, (integer(g.random.choice((1, 2, 5))), integer(2)))
    return _quotient(g.grow(_INT, d), sum_)


def _whole_quotient(g: Grower, d: int) -> Expression:
    return _quotient(g.grow(_INT, d), g.constant(_INT))


def _quotient(dividend: Expression, divisor: Expression) -> Expression:
    """An integer; of aggregates ``/`` has a fraction."""
    op = "div" if dividend.has_aggregate else "/"
    return Expression(op, _INT, (dividend, divisor))


def _mean(g: Grower, d: int) -> Expression:
    """A part of an aggregate, with its fraction."""
    made = g.aggregate(_INT)
    if made is None:
        return _ratio(g, d)
    return Expression("/", _FLOAT, (made, integer(g.random.choice((7, 60, 1000, 10**6)))))


def _converted(
    ops: tuple[str, ...], of: Type, plain: Expression
) -> Callable[[Grower, int], Expression]:
    """A conversion; ``plain`` in place of a constant that it would make NULL, which is refused."""

    def make(g: Grower, d: int) -> Expression:
        made = Expression(g.random.choice(ops), _INT, (g.grow(of, d),))
        is_refused = made.is_constant and value_of(made, ()) is None
        return Expression(made.op, _INT, (plain,)) if is_refused else made

    return make


def _joined_texts(g: Grower, d: int) -> Expression:
    """Values of any type as one text."""
    kinds = (_STRING, _INT, _BOOL, _IP, _TIMESTAMP)
    if g.random.random() < 0.5:
        sides = [g.grow(_STRING, d), g.grow(g.random.choice(kinds), d)]
        g.random.shuffle(sides)
        return Expression("||", _STRING, tuple(sides))
    count = g.random.choice((1, 2, 3))
    parts = [g.grow(g.random.choice(kinds), d) for _ in range(count)]
    if g.random.random() < 0.15:
        parts.append(literal("NULL", _STRING, None))
    return Expression("concat", _STRING, tuple(parts))


def _substring(g: Grower, d: int) -> Expression:
    """A part by its places, of which those of a column may lie outside the text."""
    first = g.known(_INT) if g.random.random() < 0.2 else None
    parts = [g.grow(_STRING, d), first or integer(g.random.randrange(1, 9))]
    if g.random.random() < 0.7:
        parts.append(integer(g.random.randrange(9)))
    return Expression(g.random.choice(("substr", "substring")), _STRING, tuple(parts))


def _overflowing(g: Grower, d: int) -> Expression:
    """A sum, product or shift that leaves 64 bits for most values."""
    op = g.random.choice(("*", "*", "*", "+", "-", "<<"))
    value = g.grow(_INT, d)
    if op == "<<":
        return Expression(op, _INT, (value, integer(g.random.choice((31, 48, 60, 63)))))
    large = integer(g.random.choice(LARGE))
    made = Expression(op, _INT, (value, large))
    if g.random.random() < 0.3:
        made = Expression("*", _INT, (made, g.grow(_INT, d)))
    return Expression("negative", _INT, (made,)) if g.random.random() < 0.1 else made


def _shift_by_value(g: Grower, d: int) -> Expression:
    """A shift by what may be negative, or more than 64 bits."""
    count = g.known(_INT)
    if count is None:
        return _overflowing(g, d)
    count = Expression("-", _INT, (count, integer(g.random.choice((0, 7, 50)))))
    return Expression(g.random.choice(("<<", ">>")), _INT, (g.grow(_INT, d), count))


def _test_of_overflow(g: Grower, d: int) -> Expression:
    """A condition over what has overflowed, as for sampling by a hash."""
    value = _overflowing(g, d)
    op = g.random.choice(("%", "/", ">>", "div", "&", "plain"))
    if op == ">>":
        value = Expression(op, _INT, (value, integer(g.random.choice((8, 32, 60, 63)))))
    elif op == "/":
        value = _quotient(value, integer(g.random.choice((7, 100, 10**9))))
    elif op != "plain":
        value = Expression(op, _INT, (value, integer(g.random.choice((7, 100, 10**9)))))
    bound = g.random.choice((integer(0), integer(10), g.grow(_INT, 0)))
    return Expression(g.random.choice(COMPARISONS), _BOOL, (value, bound))


_MAKERS: dict[Type, tuple[Callable[[Grower, int], Expression], ...]] = {
    _INT: (
        *(_overflowing,) * 3,
        _shift_by_value,
        *(_two(_INT, ("+", "-", "*"), _INT, _INT),) * 3,
        _two(_INT, ("+", "-"), _INT, _BOOL),
        _two(_INT, ("div", "%", "mod", "&", "|"), _INT, _INT),
        _with_constant(_INT, ("div", "%", "mod", "&", "|"), _INT, _INT),
        _whole_quotient,
        _with_small(_INT, ("<<", ">>"), _INT),
        _computed_constant,
        _two(_INT, ("div",), _FLOAT, _INT),
        _one(_INT, ("negative", "invert", "abs", "non_temporal"), _INT),
        _converted(("INT",), _FLOAT, literal("2.5", _FLOAT, 2.5)),
        _converted(("INT",), _STRING, literal("'12'", _STRING, b"12")),
        _converted(
            ("INT", "ipv4"), _IP, literal("IP_VAL'10.0.0.1'", _IP, addresses.of_text("10.0.0.1"))
        ),
        _one(_INT, ("INT",), _TIMESTAMP),
        _one(_INT, ("INT",), _BOOL),
        _one(_INT, ("length",), _STRING),
        _converted(("to_int",), _STRING, literal("'12'", _STRING, b"12")),
        _two(_INT, ("str_find",), _STRING, _STRING),
        _with_constant(_INT, ("/",), _TIMESTAMP, _INTERVAL),
        *(_choice(_INT),) * 2,
    ),
    _FLOAT: (
        *(_ratio,) * 2,
        _mean,
        *(_two(_FLOAT, ("+", "-", "*", "/"), _FLOAT, other) for other in (_FLOAT, _INT)),
        _two(_FLOAT, ("+", "-", "*", "/"), _INT, _FLOAT),
        _with_constant(_FLOAT, ("/", "%", "mod"), _FLOAT, _FLOAT),
        _two(_FLOAT, ("-",), _TIMESTAMP, _TIMESTAMP),
        _one(_FLOAT, ("floor", "ceil", "round", "abs", "negative"), _FLOAT),
        _one(_FLOAT, ("FLOAT",), _INT),
        _not_negative_root,
        _choice(_FLOAT),
    ),
    _BOOL: (
        *(_comparison,) * 5,
        _distinct,
        _one(_BOOL, ("is true", "is not true", "is false", "is not false"), _BOOL),
        *(_test_of_overflow,) * 2,
        _span,
        *(_two(_BOOL, ("and", "or"), _BOOL, _BOOL),) * 2,
        _two(_BOOL, ("and", "or"), _BOOL, _INT),
        _one(_BOOL, ("not",), _BOOL),
        _in_list,
        _between,
        _null_test,
        _pattern,
        _string_test,
        _regex("str_regex_match", _BOOL),
        _at_offset,
        _network,
        _one(_BOOL, ("is_private",), _IP),
        _choice(_BOOL),
    ),
    _STRING: (
        _one(_STRING, ("lower", "upper", "to_hex"), _STRING),
        _with_small(_STRING, ("str_truncate", "str_suffix"), _STRING),
        *(_one(_STRING, ("STRING",), kind) for kind in (_INT, _BOOL, _IP, _TIMESTAMP)),
        *(_joined_texts,) * 2,
        _substring,
        _regex("str_extract_regex", _STRING),
        _choice(_STRING),
    ),
    _IP: (_prefix, _with_constant(_IP, ("&",), _IP, _INT), _choice(_IP)),
    _TIMESTAMP: (
        _with_constant(_TIMESTAMP, ("+", "-"), _TIMESTAMP, _INTERVAL),
        _choice(_TIMESTAMP),
    ),
}
"""For each type how to make an expression of it out of smaller ones."""
