"""From the grammar to the tables of the parser, by lark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lark import Lark
from lark.parsers.lalr_analysis import Shift

from gscope.queries.gsql.lalr import ParseTables, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def build_tables(grammar: str, starts: Sequence[str]) -> tuple[ParseTables, Mapping[str, str]]:
    """Return the tables of a grammar, and the spelling of each terminal.

    Args:
        grammar: in lark's notation.
        starts: the rules with which a parse can begin.
    """
    parser = Lark(grammar, parser="lalr", lexer="basic", start=list(starts))
    configurations: dict[str, Any] = {
        start: parser.parse_interactive(start=start).parser_state.parse_conf for start in starts
    }
    table = configurations[starts[0]].states
    numbers: dict[Any, int] = {}
    states = [
        {
            symbol: argument if action is Shift else ~numbers.setdefault(argument, len(numbers))
            for symbol, (action, argument) in table[number].items()
        }
        for number in range(len(table))
    ]
    tables = ParseTables(
        states,
        [_rule(each) for each in numbers],
        {start: each.start_state for start, each in configurations.items()},
        {start: each.end_state for start, each in configurations.items()},
    )
    return tables, {each.name: each.pattern.value for each in parser.terminals}


def _rule(rule: Any) -> Rule:
    """Return a rule of lark; its parts are those that lark's own trees would have."""
    parts: list[int | None] = []
    lists = []
    place = 0
    # One flag for each part, and one for each optional part that is missing between them.
    for is_missing in rule.options.empty_indices or [False] * len(rule.expansion):
        if is_missing:
            parts.append(None)
            continue
        symbol = rule.expansion[place]
        if not symbol.is_term or not symbol.filter_out or rule.options.keep_all_tokens:
            parts.append(place)
        if _is_list(symbol):
            lists.append(place)
        place += 1
    return Rule(
        origin=rule.origin.name,
        size=len(rule.expansion),
        action="" if _is_list(rule.origin) else str(rule.alias or rule.origin.name),
        parts=tuple(parts),
        lists=tuple(lists),
        passes_single=bool(rule.options.expand1 and not rule.alias),
    )


def _is_list(symbol: Any) -> bool:
    """Return whether the parts of a symbol become parts of the rule around it."""
    return not symbol.is_term and symbol.name.startswith("_")
