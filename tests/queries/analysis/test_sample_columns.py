"""``sample_groups``, ``x_low`` and ``x_high``.

What the names stand for, and where they are refused.
"""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError
from gscope.queries.compile import CompileContext, Compiled, QueryText, compile_queries
from gscope.queries.expressions.expressions import Call, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import Project
from gscope.queries.plan.sample_columns import describes_sample
from gscope.queries.plan.show_expressions import show

TOTAL = "SELECT tb, count(*) AS cnt, {} FROM TCP GROUP BY time/60 AS tb"
FLOWS = """
DEFINE { query_name 'flows'; }
SELECT tb, srcIP, destIP, count(*) AS cnt FROM TCP GROUP BY time/60 AS tb, srcIP, destIP;
"""


def compiled(text: str, *, samples: bool = True) -> Compiled:
    return compile_queries([QueryText(text, "query")], CompileContext(("main",), samples=samples))


def columns(text: str, *, samples: bool = True) -> dict[str, Expression]:
    """The columns of the last query, as the plan has them."""
    root = compiled(text, samples=samples).stages[0][1].queries[-1].root
    assert isinstance(root, Project)
    return {column.name: column.expression for column in root.columns}


def value(expression: Expression) -> str:
    """The estimate of which an expression is an end, or the rows of which it is the number."""
    assert isinstance(expression, Call)
    return show(expression.arguments[0])


def refusal(text: str) -> str:
    with pytest.raises(GsqlError) as caught:
        compiled(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("selected", "name", "expected"),
    [
        ("cnt_low", "cnt_low", "cnt"),
        ("cnt_high AS most", "most", "cnt"),
        ("CNT_Low", "CNT_Low", "cnt"),
        ("sum(len), sum_len_low", "sum_len_low", "sum_len"),
        ("8 * sum(len) AS bits, bits_high", "bits_high", "8 * sum_len"),
        ("tb_low", "tb_low", "tb"),
    ],
)
def test_a_name_stands_for_the_interval_of_another_column(
    selected: str, name: str, expected: str
) -> None:
    found = columns(TOTAL.format(selected))
    assert describes_sample(found[name])
    assert value(found[name]) == expected


def test_a_column_may_come_before_the_one_that_it_describes() -> None:
    text = "SELECT tb, cnt_low, count(*) AS cnt FROM TCP GROUP BY time/60 AS tb"
    assert value(columns(text)["cnt_low"]) == "cnt"


def test_ends_have_the_type_of_the_estimate() -> None:
    schema = compiled(TOTAL.format("cnt_low, avg(len) AS mean, mean_high")).program.schema("query")
    assert schema["cnt_low"].type is GsqlType.INT
    assert schema["mean_high"].type is GsqlType.FLOAT


def test_an_expression_of_both_ends_keeps_its_fraction() -> None:
    found = columns(TOTAL.format("(cnt_high - cnt_low) / 2 AS half"))["half"]
    assert found.type is GsqlType.FLOAT


def test_aliases_and_columns_of_the_input_come_first() -> None:
    aliased = columns(
        "SELECT tb, count(*) AS cnt, max(len) AS cnt_low FROM TCP GROUP BY time/60 AS tb"
    )
    assert not describes_sample(aliased["cnt_low"])
    text = """
    DEFINE { query_name 'low'; }
    SELECT tb, count(*) AS cnt, cnt_low, sample_groups FROM TCP GROUP BY time/60 AS tb;
    SELECT tb, cnt, cnt_low, sample_groups FROM low
    """
    read = columns(text)
    assert not any(describes_sample(read[name]) for name in ("cnt_low", "sample_groups"))


def test_group_by_all_does_not_group_by_them() -> None:
    text = "SELECT time/60 AS tb, count(*) AS cnt, cnt_low, sample_groups FROM TCP GROUP BY ALL"
    found = columns(text)
    assert describes_sample(found["cnt_low"])
    assert describes_sample(found["sample_groups"])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT tb, srcIP, max(len) AS most, most_low, most_high FROM TCP"
        " GROUP BY time/60 AS tb, srcIP",
        "SELECT tb, max(len) AS most, most_low, most_high FROM TCP GROUP BY time/60 AS tb",
        f"{TOTAL.format('max(len) AS most, most_low, most_high')} NOT SAMPLED",
        "SELECT time, len AS most, most_low, most_high FROM TCP",
    ],
)
def test_an_exact_column_is_its_own_interval(text: str) -> None:
    found = columns(text)
    for name in ("most_low", "most_high"):
        end = found[name]
        assert isinstance(end, Call)
        assert end.arguments[:2] == (found["most"], Literal(0.0, GsqlType.FLOAT))


def test_an_exact_row_is_one_group() -> None:
    found = columns("SELECT tb, srcIP, sample_groups FROM TCP GROUP BY time/60 AS tb, srcIP")
    groups = found["sample_groups"]
    assert isinstance(groups, Call)
    assert groups.arguments == (Literal(1, GsqlType.INT),)


def test_they_mean_the_same_whether_packets_are_sampled_or_not() -> None:
    text = TOTAL.format("cnt_low, cnt_high, sample_groups")
    assert columns(text) == columns(text, samples=False)


def test_without_them_nothing_is_computed() -> None:
    plain = compiled(TOTAL.format("sum(len) AS bytes")).program
    described = compiled(TOTAL.format("sum(len) AS bytes, bytes_low")).program
    assert len(plain.lftas[0].partials) == 2
    assert len(described.lftas[0].partials) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TOTAL.format("packets_low"), "no column packets_low"),
        ("SELECT time, len_low FROM TCP", "no column len_low"),
        ("SELECT tb, srcIP, srcIP_low FROM TCP GROUP BY time/60 AS tb, srcIP", "srcIP is IP"),
        (f"{TOTAL.format('cnt_low')} HAVING cnt_low > 5", "is a column of SELECT only"),
        (f"{TOTAL.format('cnt_low')} ORDER BY sample_groups", "is a column of SELECT only"),
        (TOTAL.format("stddev(len) AS s, s_low"), "no formula has its variance"),
        (TOTAL.format("cnt * cnt AS c, c_low"), "no formula has its variance"),
    ],
)
def test_other_uses_are_refused(text: str, expected: str) -> None:
    assert expected in refusal(text)


def test_what_a_query_only_reads_is_refused_with_the_place_where_it_is_computed() -> None:
    low = f"DEFINE {{ query_name 'low'; }} {TOTAL.format('sum(len) AS bytes')};"
    shown = refusal(f"{low}\nSELECT tb, cnt, cnt_low FROM low")
    assert "reads estimates" in shown
    assert "write it in SELECT of low" in shown
    assert "2 | SELECT tb, cnt, cnt_low FROM low" in shown
    assert "^^^^^^^" in shown
    summed = "SELECT t, sum(cnt) AS all_of_them, sample_groups FROM low GROUP BY tb/60 AS t"
    assert "write it in SELECT of low" in refusal(f"{low}\n{summed}")


def test_rows_that_do_not_show_the_terms_of_the_sample_are_refused() -> None:
    text = """
    DEFINE { query_name 'flows'; }
    SELECT tb, destIP, count(*) AS cnt FROM TCP GROUP BY time/60 AS tb, srcIP, destIP
    SAMPLE BY srcIP;
    SELECT tb, sum(cnt) AS cnt, cnt_low FROM flows GROUP BY tb
    """
    shown = refusal(text)
    assert "do not show srcIP by which groups are sampled" in shown
    assert "select srcIP in the query that it reads" in shown
