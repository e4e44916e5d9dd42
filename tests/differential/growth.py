"""Random well-typed expressions over a scope of leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.differential.expressions import address_text
from tests.differential.syntax import Expression, Field, Type, column, literal
from tests.differential.traffic import ADDRESSES, PORTS

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
        aggregate: makes an aggregate of a type, None where none may stand or there is none of the type.
    """

    random: Random
    leaves: list[Expression]
    aggregate: Callable[[Type], Expression | None] = lambda _: None
    small: list[Expression] = field(default_factory=list)

    @classmethod
    def over(cls, random: Random, *inputs: tuple[Field, ...]) -> Grower:
        """Over the columns of inputs."""
        leaves = [column(f, side) for side, fields in enumerate(inputs) for f in fields]
        small = [
            column(f, side)
            for side, fields in enumerate(inputs)
            for f in fields
            if f.type is _INT and f.is_small
        ]
        return cls(random, leaves, small=small)

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
                    (*PORTS, 0, 1, 2, 3, 6, 7, 17, 60, 64, 1000, -1, -3, 0xFFFFFF00, 2**31)
                    if self.random.random() < 0.93
                    else LARGE
                )
                return _integer(number)
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
                address = choose(ADDRESSES)
                kind = "IP_VAL" if address >> 32 == 0xFFFF else "IPV6_VAL"
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
        return _integer(self.random.randrange(0, 9))


def _shown(kind: str, address: int) -> str:
    return f"'{address_text(address)}'" if kind else f"('{address_text(address)}')"


def _integer(number: int) -> Expression:
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


def _choice(type_: Type) -> Callable[[Grower, int], Expression]:
    def make(g: Grower, d: int) -> Expression:
        results = [g.grow(type_, d) for _ in range(g.random.choice((2, 2, 3)))]
        kind = g.random.choice(
            ("case", "case", "simple case", "if_else", "coalesce", "min_of", "max_of")
        )
        if kind in ("coalesce", "min_of", "max_of"):
            return Expression(kind, type_, tuple(results))
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
        sides[1] = _integer(g.random.choice((0, 0x0A000001, 2**32 - 1)))
    g.random.shuffle(sides)
    return Expression(g.random.choice(COMPARISONS), _BOOL, tuple(sides))


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
    byte = _integer(g.random.choice((0, 49, 71, 97, 255)))
    return Expression("byte_match_offset", _BOOL, (offset, byte, g.leaf(_STRING)))


def _string_test(g: Grower, d: int) -> Expression:
    op = g.random.choice(("str_match_start", "str_exists_substr"))
    return Expression(op, _BOOL, (g.grow(_STRING, d), g.constant(_STRING)))


def _network(g: Grower, d: int) -> Expression:
    text = g.random.choice(
        ("10.0.0.0/8", "10.0.0.0/30", "0.0.0.0/0", "2001:db8::/32", "192.168.1.7/32")
    )
    return Expression(
        "in_net", _BOOL, (g.grow(_IP, d), literal(f"'{text}'", _STRING, text.encode()))
    )


def _prefix(g: Grower, d: int) -> Expression:
    lengths = _integer(g.random.choice((0, 8, 24, 31, 32))), _integer(g.random.choice((0, 32, 128)))
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
    sum_ = Expression("+", _INT, (_integer(g.random.choice((1, 2, 5))), _integer(2)))
    return _quotient(g.grow(_INT, d), sum_)


def _whole_quotient(g: Grower, d: int) -> Expression:
    return _quotient(g.grow(_INT, d), g.constant(_INT))


def _quotient(dividend: Expression, divisor: Expression) -> Expression:
    """An integer; of aggregates ``/`` has a fraction."""
    op = "div" if any(part.op == "aggregate" for part in dividend.walk()) else "/"
    return Expression(op, _INT, (dividend, divisor))


def _mean(g: Grower, d: int) -> Expression:
    """A part of an aggregate, with its fraction."""
    made = g.aggregate(_INT)
    if made is None:
        return _ratio(g, d)
    return Expression("/", _FLOAT, (made, _integer(g.random.choice((7, 60, 1000, 10**6)))))


def _number_of_text(g: Grower, d: int) -> Expression:
    """Of a constant text that is not a number it would be an error."""
    text = g.grow(_STRING, d)
    return Expression("INT", _INT, (literal("'12'", _STRING, b"12") if text.is_constant else text,))


def _overflowing(g: Grower, d: int) -> Expression:
    """A sum, product or shift that leaves 64 bits for most values."""
    op = g.random.choice(("*", "*", "*", "+", "-", "<<"))
    value = g.grow(_INT, d)
    if op == "<<":
        return Expression(op, _INT, (value, _integer(g.random.choice((31, 48, 60, 63)))))
    large = _integer(g.random.choice(LARGE))
    made = Expression(op, _INT, (value, large))
    if g.random.random() < 0.3:
        made = Expression("*", _INT, (made, g.grow(_INT, d)))
    return Expression("negative", _INT, (made,)) if g.random.random() < 0.1 else made


def _shift_by_value(g: Grower, d: int) -> Expression:
    """A shift by what may be negative, or more than 64 bits."""
    count = g.known(_INT)
    if count is None:
        return _overflowing(g, d)
    count = Expression("-", _INT, (count, _integer(g.random.choice((0, 7, 50)))))
    return Expression(g.random.choice(("<<", ">>")), _INT, (g.grow(_INT, d), count))


def _test_of_overflow(g: Grower, d: int) -> Expression:
    """A condition over what has overflowed, as for sampling by a hash."""
    value = _overflowing(g, d)
    op = g.random.choice(("%", "/", ">>", "div", "&", "plain"))
    if op == ">>":
        value = Expression(op, _INT, (value, _integer(g.random.choice((8, 32, 60, 63)))))
    elif op == "/":
        value = _quotient(value, _integer(g.random.choice((7, 100, 10**9))))
    elif op != "plain":
        value = Expression(op, _INT, (value, _integer(g.random.choice((7, 100, 10**9)))))
    bound = g.random.choice((_integer(0), _integer(10), g.grow(_INT, 0)))
    return Expression(g.random.choice(COMPARISONS), _BOOL, (value, bound))


_MAKERS: dict[Type, tuple[Callable[[Grower, int], Expression], ...]] = {
    _INT: (
        *(_overflowing,) * 3,
        _shift_by_value,
        *(_two(_INT, ("+", "-", "*"), _INT, _INT),) * 3,
        _two(_INT, ("+", "-"), _INT, _BOOL),
        _two(_INT, ("div", "%", "&", "|"), _INT, _INT),
        _with_constant(_INT, ("div", "%", "&", "|"), _INT, _INT),
        _whole_quotient,
        _with_small(_INT, ("<<", ">>"), _INT),
        _computed_constant,
        _two(_INT, ("div",), _FLOAT, _INT),
        _one(_INT, ("negative", "invert", "abs", "non_temporal"), _INT),
        _one(_INT, ("INT",), _FLOAT),
        _number_of_text,
        _one(_INT, ("INT", "ipv4"), _IP),
        _one(_INT, ("INT",), _TIMESTAMP),
        _one(_INT, ("INT",), _BOOL),
        _one(_INT, ("length", "to_int"), _STRING),
        _two(_INT, ("str_find",), _STRING, _STRING),
        _with_constant(_INT, ("/",), _TIMESTAMP, _INTERVAL),
        *(_choice(_INT),) * 2,
    ),
    _FLOAT: (
        *(_ratio,) * 2,
        _mean,
        *(_two(_FLOAT, ("+", "-", "*", "/"), _FLOAT, other) for other in (_FLOAT, _INT)),
        _two(_FLOAT, ("+", "-", "*", "/"), _INT, _FLOAT),
        _with_constant(_FLOAT, ("/", "%"), _FLOAT, _FLOAT),
        _two(_FLOAT, ("-",), _TIMESTAMP, _TIMESTAMP),
        _one(_FLOAT, ("floor", "ceil", "round", "abs", "negative"), _FLOAT),
        _one(_FLOAT, ("FLOAT",), _INT),
        _not_negative_root,
        _choice(_FLOAT),
    ),
    _BOOL: (
        *(_comparison,) * 5,
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
        _one(_STRING, ("STRING",), _INT),
        _one(_STRING, ("STRING",), _BOOL),
        _one(_STRING, ("STRING",), _IP),
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


def temporal(random: Random, field: Field, side: int = 0) -> tuple[Expression, int]:
    """An expression that increases with ``field`` in steps of some seconds, and the unit of it."""
    base, unit = column(field, side), field.unit_ns
    length = random.choice((1, 2, 5, 10, 30)) * _SECOND_NS
    if field.type is _TIMESTAMP:
        if random.random() < 0.2:
            base = Expression(
                random.choice("+-"), _TIMESTAMP, (base, _interval(7 * _SECOND_NS // 2))
            )
        return Expression("/", _INT, (base, _interval(length))), length
    if random.random() < 0.2:
        base = Expression(random.choice("+-"), _INT, (base, _integer(random.randrange(100))))
    count = max(1, length // unit)
    made = base
    if count > 1:
        made = Expression(random.choice(("/", "/", "div")), _INT, (base, _integer(count)))
    elif random.random() < 0.3:
        count = 2 ** random.randrange(3)
        made = Expression(">>", _INT, (base, _integer(count.bit_length() - 1)))
    if random.random() < 0.15:
        return Expression("*", _INT, (made, _integer(2))), max(1, unit * count // 2)
    if random.random() < 0.1:
        return Expression("negative", _INT, (Expression("negative", _INT, (made,)),)), unit * count
    return made, unit * count


def _interval(length_ns: int) -> Expression:
    return literal(f"INTERVAL '{length_ns // 10**6} ms'", _INTERVAL, length_ns)


def in_units(field: Field, length_ns: int) -> Expression:
    """A temporal column in steps of about ``length_ns``."""
    base = column(field)
    if field.type is _TIMESTAMP:
        return Expression("/", _INT, (base, _interval(length_ns)))
    count = max(1, length_ns // field.unit_ns)
    return base if count == 1 else Expression("/", _INT, (base, _integer(count)))


def in_steps(random: Random, epoch: Expression) -> tuple[Expression, int]:
    """An epoch, now and then one that skips values, and the difference of consecutive ones."""
    if random.random() < 0.6:
        return epoch, 1
    step = random.choice((2, 3, 20))
    made = Expression("*", _INT, (epoch, _integer(step)))
    if random.random() < 0.5:
        made = Expression("+", _INT, (made, _integer(random.choice((1, 5, -7)))))
    return made, step
