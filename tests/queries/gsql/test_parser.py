from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.errors import GsqlSyntaxError, Position
from gscope.queries.gsql import nodes
from gscope.queries.gsql.constants_list import MIN_CHARACTERS
from gscope.queries.gsql.literals import quote
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.gsql.parser import definition_literal, parse, parse_expression
from gscope.queries.gsql.printer import print_expression, print_file


def _select(text: str) -> nodes.Select:
    (query,) = parse(text).queries
    assert isinstance(query.body, nodes.Select)
    return query.body


# -------------------------------------------------------------------------------------------- files


def test_queries_are_separated_by_semicolons_and_comments_are_skipped() -> None:
    file = parse(
        "\ufeff-- first\nQuery a: SELECT x FROM q; // second\n"
        ";/* third; 'not text */\nQuery b: SELECT y FROM a;\n;",
        "f.gsql",
    )
    assert [query.name for query in file.queries] == ["a", "b"]
    assert file.source == "f.gsql"


@pytest.mark.parametrize("text", ["", "  \n", "-- nothing", ";", "/**/"])
def test_a_text_without_a_query_is_an_empty_file(text: str) -> None:
    assert parse(text).items == ()


def test_a_query_is_named_by_its_prefix_or_its_define_block() -> None:
    prefixed = parse("QUERY x: SELECT a FROM q")
    defined = parse("DEFINE { query_name 'x'; } SELECT a FROM q")
    assert prefixed == defined
    assert prefixed.queries[0].name == "x"
    assert prefixed.queries[0].position == Position(1, 7)


def test_define_and_param_come_in_either_order() -> None:
    first = parse(
        "DEFINE { visibility 'external'; N -5; W word; } PARAM { n uint; m STRING } SELECT a FROM q"
    )
    second = parse(
        "param { n uint; m STRING; } define { visibility 'external'; N -5; W 'word' }"
        " select a from q"
    )
    assert first == second
    (query,) = first.queries
    assert [(entry.name, entry.value.value) for entry in query.define] == [
        ("visibility", "external"),
        ("N", -5),
        ("W", "word"),
    ]
    assert [(entry.name, entry.type_name) for entry in query.params] == [
        ("n", "uint"),
        ("m", "STRING"),
    ]


@pytest.mark.parametrize(
    ("value", "kind", "meaning"),
    [
        ("'41'", nodes.LiteralKind.INTEGER, 41),
        ("41", nodes.LiteralKind.INTEGER, 41),
        ("'-2.5'", nodes.LiteralKind.FLOAT, -2.5),
        ("'0x29'", nodes.LiteralKind.INTEGER, 41),
        ("'TRUE'", nodes.LiteralKind.BOOL, True),
        ("'IP_VAL''10.0.0.1'''", nodes.LiteralKind.IP, "10.0.0.1"),
        ("'GET'", nodes.LiteralKind.STRING, "GET"),
        ("'GET /'", nodes.LiteralKind.STRING, "GET /"),
        ("''", nodes.LiteralKind.STRING, ""),
    ],
)
def test_a_definition_stands_for_the_literal_its_text_spells(
    value: str, kind: nodes.LiteralKind, meaning: object
) -> None:
    (query,) = parse(f"DEFINE {{ X {value}; }} SELECT a FROM q").queries
    literal = definition_literal(query.define[0])
    assert (literal.kind, literal.value) == (kind, meaning)


def test_protocols_and_queries_share_a_file() -> None:
    file = parse(
        "PROTOCOL Snort (TCP) WHERE SYN = 1 AND ACK = 0 { size = total_length - header_length;"
        " low = srcPort < 1024 }\n"
        "PROTOCOL Web (TCP) {}\nSELECT size FROM Snort"
    )
    snort, web = file.protocols
    assert (snort.name, snort.parent, [field.name for field in snort.fields]) == (
        "Snort",
        "TCP",
        ["size", "low"],
    )
    assert snort.where is not None
    assert (web.where, web.fields) == (None, ())
    assert len(file.queries) == 1


def test_a_watchlist_has_typed_fields() -> None:
    (query,) = parse(
        "DEFINE { query_name 'bad'; filename 'bad.csv'; } WATCHLIST FIELDS { IP addr; uint score }"
    ).queries
    assert isinstance(query.body, nodes.WatchlistQuery)
    assert [(field.type_name, field.name) for field in query.body.fields] == [
        ("IP", "addr"),
        ("uint", "score"),
    ]


# ------------------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q", {"name": "q"}),
        ("TCP S", {"name": "TCP", "alias": "S"}),
        ("TCP as window", {"name": "TCP", "alias": "window"}),
        ("eth0.TCP", {"name": "TCP", "interface": "eth0"}),
        ("'eth0.100'.TCP", {"name": "TCP", "interface": "eth0.100"}),
        ("probe.eth0.TCP", {"name": "TCP", "interface": "eth0", "host": "probe"}),
        ("[all].TCP", {"name": "TCP", "interface_set": "all"}),
        ("lib/web/requests R", {"name": "requests", "library": "lib/web", "alias": "R"}),
        ("left.TCP", {"name": "TCP", "interface": "left"}),
    ],
)
def test_inputs(text: str, expected: dict[str, str]) -> None:
    (stream,) = _select(f"SELECT a FROM {text} WHERE a = 1").inputs
    assert stream == nodes.NamedInput(position=Position(1, 1), **expected)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT a FROM b, c", JoinKind.INNER),
        ("SELECT a FROM b JOIN c", JoinKind.INNER),
        ("SELECT a FROM b INNER JOIN c", JoinKind.INNER),
        ("SELECT a INNER_JOIN FROM b, c", JoinKind.INNER),
        ("SELECT a OUTER_JOIN FROM b, c", JoinKind.OUTER),
        ("SELECT a FROM b OUTER_JOIN c", JoinKind.OUTER),
        ("SELECT a FROM b FULL JOIN c", JoinKind.OUTER),
        ("SELECT a FROM b FULL OUTER JOIN c", JoinKind.OUTER),
        ("SELECT a LEFT_OUTER_JOIN FROM b, c", JoinKind.LEFT_OUTER),
        ("SELECT a FROM b LEFT JOIN c", JoinKind.LEFT_OUTER),
        ("SELECT a FROM b left outer join c", JoinKind.LEFT_OUTER),
        ("SELECT a FROM b RIGHT OUTER JOIN c", JoinKind.RIGHT_OUTER),
        ("SELECT a RIGHT_OUTER_JOIN FROM b, c", JoinKind.RIGHT_OUTER),
        ("SELECT a WATCHLIST_JOIN FROM b, c", JoinKind.WATCHLIST),
        ("SELECT a FROM b WATCHLIST_JOIN c", JoinKind.WATCHLIST),
    ],
)
def test_a_join_kind_is_known_in_every_spelling(text: str, kind: JoinKind) -> None:
    assert [join.kind for join in _select(text).joins] == [kind]
    assert _select(text) == _select(print_file(parse(text)))


def test_a_filter_join_has_a_column_and_a_span() -> None:
    before = _select("SELECT a FILTER_JOIN(S.time, 15) FROM R, S")
    between = _select("SELECT a FROM R FILTER_JOIN(S.time, 15) S")
    assert before == between
    bound = before.joins[0].bound
    assert bound is not None
    assert bound.column.parts == ("S", "time")


def test_a_kind_before_from_holds_for_all_inputs_and_on_stays_with_its_join() -> None:
    joins = _select("SELECT a OUTER_JOIN FROM b, c JOIN d ON b.x = d.x").joins
    assert [(join.kind, join.on is None) for join in joins] == [
        (JoinKind.OUTER, True),
        (JoinKind.OUTER, False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "TCP [RANGE '18 sec' SLIDE 15] S",
        "TCP S [RANGE '18 sec' SLIDE 15]",
        "TCP as S [range '18s' slide 15]",
    ],
)
def test_a_window_stands_before_or_after_the_alias(text: str) -> None:
    (stream,) = _select(f"SELECT a FROM {text}").inputs
    assert stream.alias == "S"
    assert isinstance(stream.window, nodes.RangeWindow)
    assert isinstance(stream.window.range, nodes.LiteralSyntax)
    assert stream.window.range.value == 18_000_000_000


def test_subqueries_stand_in_brackets_and_in_with() -> None:
    body = (
        parse(
            "WITH a AS (SELECT x FROM q),"
            " b AS (SELECT x FROM a) ((SELECT x FROM b, (SELECT y FROM q) c))"
        )
        .queries[0]
        .body
    )
    assert isinstance(body, nodes.With)
    assert [binding.name for binding in body.bindings] == ["a", "b"]
    assert isinstance(body.body, nodes.Select)
    assert isinstance(body.body.inputs[1], nodes.SubqueryInput)


def test_merge_takes_any_number_of_inputs() -> None:
    body = parse("MERGE a.t : b.t : c.t SLACK 10 FROM a, b, eth0.TCP c").queries[0].body
    assert isinstance(body, nodes.MergeQuery)
    assert [column.parts for column in body.columns] == [("a", "t"), ("b", "t"), ("c", "t")]
    assert body.slack == nodes.LiteralSyntax(10, nodes.LiteralKind.INTEGER, position=Position(1, 1))


def test_what_stands_behind_a_merge_or_a_union_says_how_it_is_sampled() -> None:
    merge = parse("MERGE a.t : b.t SLACK 1 FROM a, b SAMPLE BY x, y").queries[0].body
    assert isinstance(merge, nodes.MergeQuery)
    assert [term.parts for term in merge.sample_by if isinstance(term, nodes.Name)] == [
        ("x",),
        ("y",),
    ]
    union = parse("SELECT x FROM q UNION ALL SELECT x FROM r NOT SAMPLED").queries[0].body
    assert isinstance(union, nodes.MergeQuery)
    assert union.is_not_sampled
    assert not any(one.body.is_not_sampled for one in union.inputs)  # type: ignore[union-attr]
    bracketed = parse("SELECT x FROM q UNION ALL (SELECT x FROM r SAMPLE BY x)").queries[0].body
    assert isinstance(bracketed, nodes.MergeQuery)
    assert not bracketed.sample_by
    with pytest.raises(GsqlSyntaxError, match="SAMPLE BY and NOT SAMPLED in one MERGE"):
        parse("MERGE a.t : b.t FROM a, b SAMPLE BY x NOT SAMPLED")


def test_clauses_come_in_any_order_and_two_spellings() -> None:
    ordered = (
        "SELECT a FROM q WHERE b GROUP BY t AS tb, c SUPERGROUP BY tb"
        " HAVING d CLEANING_WHEN count_distinct$(*) > 1"
        " CLEANING_BY e CLOSING_WHEN f"
    )
    shuffled = (
        "SELECT a FROM q CLOSING WHEN f GROUP BY t AS tb, c SUPERGROUP tb WHERE b CLEANING BY e"
        " HAVING d CLEANING WHEN count_distinct$(*) > 1"
    )
    assert _select(ordered) == _select(shuffled)


# -------------------------------------------------------------------------------------- expressions


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a or b and not c = d", "a OR (b AND (NOT (c = d)))"),
        ("a | b & c << d + e * -f", "a | (b & (c << (d + (e * (-f)))))"),
        ("a - b - c", "(a - b) - c"),
        ("a / b % c div d", "((a / b) % c) DIV d"),
        ("a & b = c", "(a & b) = c"),
        ("not a in (1) and b", "(NOT (a IN (1))) AND b"),
        ("a between 1 and 2 and c", "(a BETWEEN 1 AND 2) AND c"),
        ("~a + !b", "(~a) + (NOT b)"),
        ("a is null or b is not null", "(a IS NULL) OR (b IS NOT NULL)"),
    ],
)
def test_precedence(text: str, grouped: str) -> None:
    assert parse_expression(text) == parse_expression(grouped)


def test_keywords_that_are_not_reserved_are_names_where_a_name_can_stand() -> None:
    words = (
        "time len data protocol offset id type code window interface op range slide left on query"
        " define with fields"
    )
    for word in words.split():
        assert parse_expression(word) == nodes.Name((word,), position=Position(1, 1))
        select = _select(
            f"SELECT {word} AS {word}, {word}({word}), s.{word} FROM {word} AS {word}"
            f" GROUP BY {word} AS {word}"
        )
        assert select.group_by[0].name == word


def test_behind_a_dot_every_word_is_a_name() -> None:
    assert parse_expression("s.select + S.inner.srcIP") == parse_expression(
        "(s.select) + S . inner . srcIP"
    )


def test_identifiers_keep_their_case() -> None:
    assert print_expression(parse_expression("SrcIP + srcip")) == "SrcIP + srcip"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("0xFFFFFFFFFFFFFFFF", nodes.LiteralKind.INTEGER, 2**64 - 1),
        ("0xFFfF", nodes.LiteralKind.INTEGER, 65535),
        ("hex'ff'", nodes.LiteralKind.INTEGER, 255),
        ("007", nodes.LiteralKind.INTEGER, 7),
        ("1.5e-3", nodes.LiteralKind.FLOAT, 0.0015),
        (".5", nodes.LiteralKind.FLOAT, 0.5),
        ("5.", nodes.LiteralKind.FLOAT, 5.0),
        (r"'it''s \\ \n'", nodes.LiteralKind.STRING, r"it's \\ \n"),
        ("True", nodes.LiteralKind.BOOL, True),
        ("null", nodes.LiteralKind.NULL, None),
        ("IP_VAL'10.0.0.1'", nodes.LiteralKind.IP, "10.0.0.1"),
        ("IPV6_VAL '2001:db8::1'", nodes.LiteralKind.IPV6, "2001:db8::1"),
        ("TIMEVAL'10.5'", nodes.LiteralKind.TIMEVAL, "10.5"),
        ("INTERVAL '5 sec'", nodes.LiteralKind.INTERVAL, 5_000_000_000),
        ("INTERVAL '1 min 30 sec'", nodes.LiteralKind.INTERVAL, 90_000_000_000),
        ("INTERVAL '1h30m'", nodes.LiteralKind.INTERVAL, 5_400_000_000_000),
        ("INTERVAL '2 weeks'", nodes.LiteralKind.INTERVAL, 1_209_600_000_000_000),
        ("interval '1.5 hours'", nodes.LiteralKind.INTERVAL, 5_400_000_000_000),
    ],
)
def test_literals(text: str, kind: nodes.LiteralKind, value: object) -> None:
    literal = parse_expression(text)
    assert isinstance(literal, nodes.LiteralSyntax)
    assert (literal.kind, literal.value) == (kind, value)


@pytest.mark.parametrize(
    "text",
    [
        "18446744073709551616",
        "9" * 5000,
        "0x1" + "0" * 16,
        "HEX'xy'",
        "HEX''",
        "1e999",
        "12abc",
        "0x",
        "IP_VAL'10.0.0'",
        "IPV6_VAL'fe80::1%eth0'",
        "INTERVAL '5'",
        "INTERVAL '5 fortnights'",
        "INTERVAL '0.1 ns'",
        "INTERVAL '99999999999 hour'",
        "INTERVAL '²  sec'",
        "٣",
        "$",
        "#1",
        "a.b.c.d.e",
    ],
)
def test_literals_and_names_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(GsqlSyntaxError) as caught:
        parse_expression(text)
    assert caught.value.position is not None


# ---------------------------------------------------------------------------------------- positions


def test_every_node_knows_where_it_stands() -> None:
    select = _select("SELECT a,\n  sum(S.len)\nFROM eth0.TCP S\nWHERE S.len\r\n >= 'x'")
    output = select.outputs[1]
    assert isinstance(output, nodes.OutputItem)
    assert isinstance(output.expression, nodes.FunctionCall)
    assert output.expression.position == Position(2, 3, 3)
    assert output.expression.args[0].position == Position(2, 7, 5)
    assert select.inputs[0].position == Position(3, 6, 8)
    assert isinstance(select.where, nodes.Binary)
    assert select.where.position == Position(5, 2, 2)
    assert select.where.right.position == Position(5, 5, 3)


_CONSTANTS = st.one_of(
    st.integers(-(2**63) + 1, 2**63 - 1).map(str),
    st.integers(0, 2**64 - 1).map(hex),
    st.text(st.characters(exclude_characters="'", codec="utf-8"), max_size=6).map(quote),
)


@given(
    st.lists(_CONSTANTS, min_size=1, max_size=8),
    st.sampled_from([", ", ",\n", " ,\r\n  ", "\t,", ", -- why\n", ", /* b */ "]),
)
def test_a_long_list_of_constants_is_read_as_its_parts_are(parts: list[str], comma: str) -> None:
    many = parts * (1 + MIN_CHARACTERS // len(comma.join(parts)))
    text = f"x NOT IN ({comma.join(many)}) AND y = 2"
    whole = parse_expression(text)
    # An addition is not a constant, so that this list is read one token at a time.
    piecewise = parse_expression(text.replace("(", "(1 + 1 , ", 1))
    assert isinstance(whole, nodes.Binary)
    assert isinstance(piecewise, nodes.Binary)
    assert isinstance(whole.left, nodes.InList)
    assert isinstance(piecewise.left, nodes.InList)
    assert whole.left.choices == piecewise.left.choices[1:]
    lines = [choice.position.line for choice in whole.left.choices]
    assert lines == [choice.position.line for choice in piecewise.left.choices[1:]]
    columns = [c.position.column for c in whole.left.choices if c.position.line > 1]
    assert columns == [c.position.column for c in piecewise.left.choices[1:] if c.position.line > 1]


def test_a_list_of_100_000_addresses_parses() -> None:
    addresses = [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(100_000)]
    listed = "', '".join(addresses)
    expression = parse_expression(f"srcIP IN ('{listed}')")
    assert isinstance(expression, nodes.InList)
    assert [choice.value for choice in expression.choices] == addresses  # type: ignore[union-attr]


@pytest.mark.parametrize("text", [".²", "x.²", "1²", "²", "x = .٣", "x[.①]"])
def test_digits_of_other_scripts_are_refused(text: str) -> None:
    with pytest.raises(GsqlSyntaxError):
        parse_expression(text)
