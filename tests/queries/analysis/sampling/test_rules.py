"""What each rule lets a sample do.

The terms of LFTAs, or the reason why a result is not sampled.
"""

from __future__ import annotations

import pytest
from tests.queries.analysis.sampling.samples import compiled
from tests.support.user_code import offered

from gscope.errors import UnsupportedError
from gscope.queries.plan.program_sampling import Standing
from gscope.queries.plan.show_expressions import show

FLOWS = (
    "DEFINE { query_name 'flows'; } SELECT tb, srcIP, destIP, count(*) AS cnt, sum(len) AS bytes "
    "FROM TCP GROUP BY time/60 AS tb, srcIP, destIP; "
)
TOTAL = (
    "DEFINE { query_name 'total'; } SELECT tb, count(*) AS cnt FROM TCP GROUP BY time/60 AS tb; "
)
OTHERS = TOTAL.replace("'total'", "'others'").replace("TCP", "UDP")


def _schemes(text: str) -> dict[str, str]:
    """Return for each LFTA its terms, or its method."""
    return {
        lfta.name: "none"
        if lfta.sampling is None
        else ", ".join(map(show, lfta.sampling.terms)) or lfta.sampling.method.value
        for lfta in compiled(text).program.lftas
    }


def _refusals(text: str) -> list[str]:
    return [reason for each in compiled(text).sampling.unsampled for reason in each.reasons]


def _columns(text: str, query: str) -> dict[str, Standing]:
    (component,) = compiled(text).program.sampling
    return dict(component.node(query).columns)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT tb, max(len) FROM TCP GROUP BY time/60 AS tb", "does not estimate it"),
        ("SELECT tb, count_dups(len) FROM TCP GROUP BY time/60 AS tb", "does not estimate it"),
        ("SELECT tb, approx_top_k(srcIP, 3) FROM TCP GROUP BY time/60 AS tb", "does not estimate"),
        ("SELECT tb, count(*) FROM TCP GROUP BY time/60 AS tb HAVING count(*) > 9", "HAVING reads"),
        (TOTAL + "SELECT tb, cnt FROM total WHERE cnt > 9", "reads an estimate as if it were"),
        (TOTAL + "SELECT tb, cnt > 9 AS many FROM total", "reads an estimate as if it were"),
        (TOTAL + "SELECT tb, cnt FROM total GROUP BY tb, cnt", "reads an estimate"),
        (TOTAL + "SELECT hour, max(cnt) FROM total GROUP BY tb/60 AS hour", "of estimated groups"),
        # of a minute without packets in the sample there is no row: an average lacks it
        (TOTAL + "SELECT hour, avg(cnt) FROM total GROUP BY tb/60 AS hour", "of estimated groups"),
        (TOTAL + "SELECT hour, count(*) FROM total GROUP BY tb/60 AS hour", "of estimated groups"),
        (TOTAL + "SELECT hour, min(tb) FROM total GROUP BY tb/60 AS hour", "of estimated groups"),
        (FLOWS + "SELECT tb, srcIP FROM flows ORDER BY cnt DESC LIMIT 3", "the first rows"),
        # without the time, the first rows are those of all epochs
        (
            "SELECT count(*) AS n FROM TCP GROUP BY time/60 AS tb ORDER BY n DESC LIMIT 3",
            "the first rows",
        ),
        (
            "SELECT tb, count(*) AS n FROM TCP GROUP BY time/60 AS tb, time%60 AS s "
            "ORDER BY n DESC LIMIT 3",
            "the first rows",
        ),
        # a pair of totals is missing where the sample has none of either
        (
            TOTAL + OTHERS + "DEFINE { query_name 'both'; } SELECT A.tb AS tb, A.cnt AS n FROM "
            "total A, others B WHERE A.tb = B.tb; SELECT h, sum(n) FROM both GROUP BY tb/60 AS h",
            "missing where the sample has no packet of a total",
        ),
        (
            TOTAL + FLOWS + "SELECT A.tb, count(*) FROM flows A, total B WHERE A.tb = B.tb "
            "GROUP BY A.tb",
            "missing where the sample has no packet of a total",
        ),
        # which of two totals is missing depends on the sample
        (
            TOTAL + OTHERS + "SELECT A.tb FROM total A LEFT JOIN others B ON A.tb = B.tb "
            "WHERE B.tb IS NULL",
            "reads an estimate",
        ),
        ("SELECT S.time FROM TCP S, UDP A WHERE S.time = A.time", "of the rate R it keeps R²"),
        ("SELECT S.time FROM TCP S LEFT_OUTER_JOIN UDP A WHERE S.time = A.time", "an outer join"),
        (
            "SELECT tb, running_sum(len) FROM TCP "
            "GROUP BY time/60 AS tb, length(TCP_data) > 9 AS b "
            "CLOSING_WHEN count(*) = 0",
            "",
        ),
        (
            TOTAL + FLOWS + "SELECT A.tb, A.cnt FROM flows A RIGHT_OUTER_JOIN total B "
            "WHERE A.tb = B.tb",
            "an outer join",
        ),
        (
            TOTAL + FLOWS + "SELECT A.tb, A.cnt FROM flows A LEFT_OUTER_JOIN total B "
            "WHERE A.tb = B.tb",
            "",
        ),
        ("SELECT time, increasing(sequence_number) AS s FROM TCP", "a declared order"),
        (
            "SELECT tb, running_sum(len) FROM TCP GROUP BY time/60 AS tb CLOSING_WHEN count(*) = 0",
            "groups that live across epochs",
        ),
        (
            "SELECT tb, srcIP, sum(len) FROM IP WHERE ssample(len, 3) "
            "GROUP BY time/60 AS tb, srcIP, uts",
            "the sampling operator chooses",
        ),
        (
            TOTAL + FLOWS + "SELECT A.tb, A.cnt FROM flows A, total B WHERE A.tb = B.tb and "
            "A.cnt = B.cnt",
            "reads an estimate",
        ),
    ],
)
def test_a_query_that_a_sample_would_break_is_not_sampled(text: str, reason: str) -> None:
    found = _refusals(text)
    assert bool(found) == bool(reason)
    assert all(reason in each for each in found[-1:])
    assert ("none" in _schemes(text).values()) == bool(reason)


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        # 1: sums of estimated counts are estimates
        (TOTAL + "SELECT h, sum(cnt) AS n FROM total GROUP BY tb/60 AS h", "query", "scaled"),
        (
            TOTAL + OTHERS + "SELECT A.tb, coalesce(B.cnt, 0) AS n FROM total A LEFT JOIN others B "
            "ON A.tb = B.tb",
            "query",
            "scaled",
        ),
        # the sample chooses which of two estimates it is
        (
            TOTAL + OTHERS + "SELECT A.tb, coalesce(B.cnt, A.cnt) AS n FROM total A "
            "LEFT JOIN others B ON A.tb = B.tb",
            "query",
            "estimated",
        ),
        # a total that one side may lack is there, or not, by chance; their time is that of either
        (
            TOTAL + OTHERS + "SELECT A.tb AS n FROM total A RIGHT JOIN others B ON A.tb = B.tb",
            "query",
            "estimated",
        ),
        (
            TOTAL + OTHERS + "SELECT A.tb AS n FROM total A OUTER_JOIN others B WHERE A.tb = B.tb",
            "query",
            "whole",
        ),
        # 5: above whole rows counts and sums are scaled, ratios and averages are not
        (FLOWS + "SELECT tb, count(*) AS n FROM flows GROUP BY tb", "query", "scaled"),
        (FLOWS + "SELECT tb, sum(bytes) AS n FROM flows GROUP BY tb", "query", "scaled"),
        (FLOWS + "SELECT tb, avg(bytes) AS n FROM flows GROUP BY tb", "query", "estimated"),
        (
            FLOWS + "SELECT tb, sum(bytes)/sum(cnt) AS n FROM flows GROUP BY tb",
            "query",
            "estimated",
        ),
        (FLOWS + "SELECT tb, sum(bytes)*8 AS n FROM flows GROUP BY tb", "query", "scaled"),
        (FLOWS + "SELECT tb, srcIP, max(cnt) AS n FROM flows GROUP BY tb, srcIP", "query", "whole"),
        # a row of a whole query beside the total of its epoch
        (
            TOTAL + FLOWS + "SELECT A.tb, A.srcIP, A.cnt/B.cnt AS n FROM flows A, total B "
            "WHERE A.tb = B.tb",
            "query",
            "estimated",
        ),
    ],
)
def test_columns_above_a_sample_are_whole_scaled_or_estimated(
    text: str, query: str, expected: str
) -> None:
    assert _columns(text, query)["n"] is Standing(expected)


def test_different_values_are_scaled_only_if_each_is_kept_as_a_whole() -> None:
    text = FLOWS[:-2] + " SAMPLE BY srcIP; SELECT tb, count_distinct(X) AS n FROM flows GROUP BY tb"
    assert _columns(text.replace("X", "srcIP"), "query")["n"] is Standing.SCALED
    with pytest.raises(UnsupportedError, match="does not estimate it"):
        compiled(text.replace("X", "destIP"))


def test_terms_of_one_field_meet_in_their_least_common_term() -> None:
    """A result that reads two groupings by one field gets what both have in common."""
    text = (
        "DEFINE { query_name 'a'; } "
        "SELECT tb, p, count(*) AS c FROM IP GROUP BY time/60 AS tb, {}; "
        "DEFINE { query_name 'b'; } SELECT tb, q, max(c) FROM a GROUP BY tb, {}"
    )
    cases = {
        ("srcPort/60 AS p", "p/3 AS q"): "srcPort DIV 180",
        ("srcPort & 0xFF0 AS p", "p & 0xF8 AS q"): "srcPort & 240",
        ("srcPort AS p", "p % 6 AS q"): "srcPort % 6",
        ("srcPort >> 2 AS p", "p/4 AS q"): "srcPort & -16",
        ("srcPort + 1 AS p", "p AS q"): "srcPort",
        ("srcPort & 0xFF0 AS p", "p/7 AS q"): "(srcPort & 4080) DIV 7",
    }
    for (one, other), expected in cases.items():
        schemes = _schemes(text.replace("{}", one, 1).replace("{}", other, 1))
        assert schemes == {"a": expected}, (one, other)


def test_a_column_of_a_side_that_can_be_missing_is_no_term_above_an_outer_join() -> None:
    """Packets of the other side without a partner would meet in the group of NULL."""
    flows = FLOWS + FLOWS.replace("'flows'", "'others'").replace("TCP", "UDP")
    both = "FROM flows A {} others B ON A.tb = B.tb AND A.srcIP = B.srcIP"
    above = (
        "DEFINE {{ query_name 'both'; }} SELECT A.tb AS tb, A.srcIP AS srcIP, B.cnt AS cnt {}; "
        "SELECT tb, srcIP, max(cnt) FROM both GROUP BY tb, srcIP"
    )
    inner = flows + above.format(both.format("JOIN"))
    outer = flows + above.format(both.format("FULL JOIN"))
    assert _schemes(inner) == {"flows": "srcIP", "others": "srcIP"}
    assert set(_schemes(outer).values()) == {"none"}


def test_so_it_is_if_both_sides_read_the_same_packets() -> None:
    """Flows without a partner have the source NULL, whichever theirs is."""
    above = (
        "DEFINE { query_name 'both'; } SELECT B.tb AS tb, A.srcIP AS srcIP, B.cnt AS cnt "
        "FROM flows A {} flows B ON A.tb = B.tb AND A.srcIP = B.srcIP AND A.cnt > B.cnt + 5; "
        "SELECT tb, srcIP, max(cnt) FROM both GROUP BY tb, srcIP"
    )
    assert _schemes(FLOWS + above.replace("{}", "JOIN")) == {"flows": "srcIP"}
    assert _schemes(FLOWS + above.replace("{}", "RIGHT JOIN")) == {"flows": "none"}


def test_a_value_of_fields_of_both_sides_is_no_term() -> None:
    """Pairs with one sum of the ports of different packets can differ.

    It is the sums of each packet that differ.
    """
    text = (
        "SELECT S.time, count(*) FROM TCP S, TCP A WHERE S.time = A.time "
        "and S.srcPort + S.destPort = A.srcPort + A.destPort GROUP BY S.time, {}"
    )
    both = text.replace("{}", "S.srcPort + S.destPort")
    assert set(_schemes(both).values()) == {"srcPort + destPort"}
    (component,) = compiled(text.replace("{}", "S.srcPort + A.destPort")).program.sampling
    assert [node.scaled for node in component.nodes] == [("cnt",)]


def test_a_pair_of_which_one_side_is_no_function_of_its_packets_is_no_term() -> None:
    """Also where both sides read the same packets."""
    sizes = (
        "DEFINE { query_name 'sizes'; } SELECT tb, srcPort, max(len) AS most FROM TCP "
        "GROUP BY time/60 AS tb, srcPort; "
    )
    join = "SELECT A.tb, A.srcPort, B.most FROM sizes A, sizes B WHERE A.tb = B.tb and "
    assert _schemes(f"{sizes}{join} A.srcPort = B.srcPort") == {"sizes": "srcPort"}
    assert _schemes(f"{sizes}{join} A.srcPort = B.most") == {"sizes": "none"}


def test_a_union_of_which_one_input_is_no_function_of_its_packets_has_no_term() -> None:
    """Also where both inputs read the same packets."""
    sizes = (
        "DEFINE { query_name 'sizes'; } SELECT tb, srcPort, max(len) AS most FROM TCP "
        "GROUP BY time/60 AS tb, srcPort; DEFINE { query_name 'u'; } SELECT tb, srcPort FROM sizes "
        "UNION ALL SELECT tb, {} FROM sizes; SELECT tb, srcPort, count(*) FROM u "
        "GROUP BY tb, srcPort HAVING count(*) > 1"
    )
    assert _schemes(sizes.replace("{}", "srcPort")) == {"sizes": "srcPort"}
    assert _schemes(sizes.replace("{}", "most")) == {"sizes": "none"}


def test_results_that_read_one_lfta_get_what_their_sets_have_in_common() -> None:
    text = FLOWS + (
        "DEFINE { query_name 'one'; } SELECT tb, srcIP, max(cnt) FROM flows GROUP BY tb, srcIP; "
        "DEFINE { query_name 'two'; } SELECT tb, net, max(cnt) FROM flows "
        "GROUP BY tb, prefix(srcIP, 24) AS net, destIP"
    )
    assert _schemes(text) == {"flows": "prefix(srcIP, 24, 128)"}


def test_results_without_a_common_set_read_instances_of_their_own() -> None:
    text = FLOWS + (
        "DEFINE { query_name 'one'; } SELECT tb, srcIP, max(cnt) FROM flows GROUP BY tb, srcIP; "
        "DEFINE { query_name 'two'; } SELECT tb, destIP, max(cnt) FROM flows GROUP BY tb, destIP; "
        "DEFINE { query_name 'three'; } SELECT tb, max(cnt) FROM flows GROUP BY tb"
    )
    result = compiled(text)
    assert _schemes(text) == {"flows": "srcIP", "flows_2": "destIP", "flows_3": "none"}
    program = result.program
    assert [name for name, _ in program.results] == ["one", "two", "three"]
    assert [component.lftas for component in program.sampling] == [("flows",), ("flows_2",)]
    assert [node.query for node in program.nodes] == [
        *("flows", "flows_2", "flows_3"),
        *("one", "two", "three"),
    ]
    assert result.shared.lftas == compiled(text, samples=False).program.lftas


def test_an_instance_has_the_name_of_no_query() -> None:
    text = FLOWS + (
        "DEFINE { query_name 'one'; } SELECT tb, srcIP, max(cnt) FROM flows GROUP BY tb, srcIP; "
        "DEFINE { query_name 'two'; } SELECT tb, destIP, max(cnt) FROM flows GROUP BY tb, destIP; "
        "DEFINE { query_name 'flows_2'; } SELECT tb, srcPort, max(len) AS most FROM TCP "
        "GROUP BY time/60 AS tb, srcPort; "
        "DEFINE { query_name 'three'; } SELECT tb, max(most) FROM flows_2 GROUP BY tb, srcPort"
    )
    program = compiled(text).program
    assert _schemes(text) == {"flows": "srcIP", "flows_3": "destIP", "flows_2": "srcPort"}
    assert program.schema("flows_3") == program.schema("flows")
    assert program.schema("flows_2").names == ("tb", "srcPort", "most")


def test_both_sides_of_a_join_with_itself_share_an_lfta_if_a_term_suits_both() -> None:
    text = "SELECT S.time, S.srcIP FROM TCP S, TCP A WHERE S.time = A.time and {}"
    assert _schemes(text.format("S.srcIP = A.srcIP and S.seq + 1 = A.seq")) == {"query.1": "srcIP"}
    assert _schemes(text.format("S.srcIP = A.destIP")) == {
        "query.1": "srcIP",
        "query.1_2": "destIP",
    }


def test_off_the_program_is_the_same_with_and_without_hints() -> None:
    plain = compiled(FLOWS, samples=False).program
    hinted = compiled(FLOWS[:-2] + " SAMPLE BY srcIP", samples=False).program
    assert hinted.lftas == plain.lftas
    assert hinted.nodes == plain.nodes
    assert hinted.sampling == ()


def test_a_user_aggregate_is_estimated_only_if_it_is_declared_so() -> None:
    declared = """
        @aggregate("INT", returns="INT"{})
        class {}:
            def initialize(self):
                self.values = []
            def iterate(self, value):
                self.values.append(value)
            def output(self):
                return len(self.values)
    """
    text = "SELECT tb, {}(len) AS n FROM TCP GROUP BY time/60 AS tb"
    with offered(declared.format("", "exact"), declared.format(", estimable=True", "mean")):
        assert _columns(text.format("mean"), "query")["n"] is Standing.ESTIMATED
        assert "does not estimate it" in _refusals(text.format("exact"))[0]
        grouped = text.format("exact") + ", srcIP"
        assert set(_schemes(grouped).values()) == {"srcIP"}
