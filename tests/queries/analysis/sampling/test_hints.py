"""SAMPLE BY, NOT SAMPLED and DEFINE: what they do, and how wrong ones are reported."""

from __future__ import annotations

import pytest
from tests.queries.analysis.sampling.samples import compiled

from gscope.errors import GsqlError
from gscope.queries.plan.show_expressions import show

GROUPS = "SELECT tb, srcIP, count(*) AS cnt FROM TCP GROUP BY time/60 AS tb, srcIP, destIP"
JOIN = "SELECT S.time, S.srcIP FROM TCP S, UDP A WHERE S.time = A.time and S.srcIP = A.destIP"


def _schemes(text: str) -> list[str]:
    """Return the terms of each LFTA, or its method."""
    samplings = [lfta.sampling for lfta in compiled(text).program.lftas]
    return [
        "none" if s is None else ", ".join(map(show, s.terms)) or s.method.value for s in samplings
    ]


def _scheme(text: str) -> str:
    """Return the terms of the first LFTA, or its method."""
    return _schemes(text)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GROUPS, "srcIP, destIP"),
        (f"{GROUPS} SAMPLE BY destIP, srcIP", "destIP, srcIP"),
        (f"{GROUPS} SAMPLE BY srcIP & 0xFFFFFF00", "srcIP & 4294967040"),
        (f"{GROUPS} SAMPLE_BY srcIP", "srcIP"),
        (f"{GROUPS} NOT SAMPLED", "none"),
        (f"{GROUPS} not_sampled", "none"),
        (f"DEFINE {{ sampling 'tuples'; }} {GROUPS}", "tuples"),
        (f"DEFINE {{ sampling 'groups'; }} {GROUPS}", "srcIP, destIP"),
        (f"DEFINE {{ sampling none; }} {GROUPS}", "none"),
        (f"DEFINE {{ sampling 'groups'; }} {GROUPS} SAMPLE BY srcIP", "srcIP"),
        ("SELECT time, srcIP FROM TCP SAMPLE BY srcIP, destIP", "srcIP, destIP"),
        (
            "SELECT tb, net, count(*) FROM TCP GROUP BY time/60 AS tb, prefix(srcIP, 24) AS net "
            "SAMPLE BY net",
            "prefix(srcIP, 24, 128)",
        ),
        (f"{JOIN} SAMPLE BY A.destIP", "srcIP"),
        (
            "SELECT srcIP, count(*) FROM TCP [RANGE 60 SLIDE 10] GROUP BY srcIP SAMPLE BY srcIP",
            "srcIP",
        ),
        ("SELECT DISTINCT time, srcIP, destIP FROM TCP SAMPLE BY destIP", "destIP"),
    ],
)
def test_a_hint_decides_how_a_query_is_sampled(text: str, expected: str) -> None:
    assert _scheme(text) == expected


UNITED = "SELECT time, srcIP FROM TCP UNION ALL SELECT time, destIP FROM UDP"
MERGED = "MERGE A.time : B.time FROM a.TCP A, b.TCP B"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (UNITED, ["tuples", "tuples"]),
        (f"{UNITED} SAMPLE BY srcIP", ["srcIP", "destIP"]),
        (f"{UNITED} SAMPLE BY srcIP & 0xFF", ["srcIP & 255", "destIP & 255"]),
        (f"{UNITED} NOT SAMPLED", ["none", "none"]),
        (f"{UNITED} ORDER BY srcIP SAMPLE BY srcIP", ["srcIP", "destIP"]),
        (f"{MERGED} SAMPLE BY srcIP, srcPort & 255", ["srcIP, srcPort & 255"] * 2),
        (f"{MERGED} NOT SAMPLED", ["none", "none"]),
        (f"DEFINE {{ sampling 'tuples'; }} {MERGED}", ["tuples", "tuples"]),
        # all inputs of a union are sampled as one of them asks for
        (
            "SELECT time, srcIP FROM TCP SAMPLE BY srcIP UNION ALL SELECT time, destIP FROM UDP",
            ["srcIP", "destIP"],
        ),
        (
            "SELECT time, srcIP FROM TCP UNION ALL (SELECT time, destIP FROM UDP SAMPLE BY destIP)",
            ["srcIP", "destIP"],
        ),
        (
            f"DEFINE {{ query_name 'm'; }} {MERGED} SAMPLE BY prefix(srcIP, 24); "
            "SELECT tb, srcIP, max(len) FROM m GROUP BY time/60 AS tb, srcIP",
            ["prefix(srcIP, 24, 128)"] * 2,
        ),
        (
            "SELECT srcIP, count(*) AS n FROM TCP GROUP BY srcIP UNION ALL "
            "SELECT destIP, max(len) FROM UDP GROUP BY destIP SAMPLE BY srcIP & 0xFFFF",
            ["srcIP & 65535", "destIP & 65535"],
        ),
    ],
)
def test_a_hint_of_a_union_holds_for_all_its_inputs(text: str, expected: list[str]) -> None:
    assert _schemes(text) == expected


@pytest.mark.parametrize("written", ["0.2", "'20%'", "'1/5'", "'0.2'"])
def test_the_rate_is_at_least_that_of_every_query_of_a_component(written: str) -> None:
    flows = f"DEFINE {{ query_name 'flows'; min_rate '5%'; }} {GROUPS}; "
    above = (
        f"DEFINE {{ min_rate {written}; }} SELECT tb, srcIP, sum(cnt) FROM flows GROUP BY tb, srcIP"
    )
    (component,) = compiled(flows + above).program.sampling
    assert component.min_rate == 0.2


def test_a_hint_holds_for_the_results_that_read_its_query() -> None:
    flows = f"DEFINE {{ query_name 'flows'; }} {GROUPS} SAMPLE BY srcIP, destIP; "
    assert _scheme(flows + "SELECT tb, srcIP, sum(cnt) FROM flows GROUP BY tb, srcIP") == (
        "srcIP, destIP"
    )
    none = f"DEFINE {{ query_name 'flows'; }} {GROUPS} NOT SAMPLED; "
    assert _scheme(none + "SELECT tb, srcIP, max(cnt) FROM flows GROUP BY tb, srcIP") == "none"


def test_a_result_keeps_the_terms_of_its_hint_whatever_others_need() -> None:
    flows = (
        "DEFINE { query_name 'flows'; } "
        f"{GROUPS.replace('srcIP, count', 'srcIP, destIP, count')}; "
    )
    one = "DEFINE { query_name 'one'; } SELECT tb, srcIP, max(cnt) FROM flows GROUP BY tb, srcIP"
    two = "DEFINE { query_name 'two'; } SELECT tb, srcIP, destIP, max(cnt) FROM flows "
    two += "GROUP BY tb, srcIP, destIP"

    def found(text: str) -> list[str]:
        lftas = compiled(text).program.lftas
        return [", ".join(map(show, x.sampling.terms)) for x in lftas if x.sampling is not None]

    assert found(f"{flows}{one}; {two}") == ["srcIP"]
    assert found(f"{flows}{one}; {two} SAMPLE BY srcIP, destIP") == ["srcIP", "srcIP, destIP"]


def test_names_of_hints_are_names_elsewhere() -> None:
    text = "SELECT time AS sample, srcIP AS sampled FROM TCP sample WHERE NOT sample.SYN = 1"
    assert _scheme(f"{text} NOT SAMPLED") == "none"


@pytest.mark.parametrize("samples", [True, False])
@pytest.mark.parametrize(
    ("text", "marked", "message", "remedy"),
    [
        (
            f"{GROUPS} SAMPLE BY srcPort / 2",
            "srcPort",
            "packets of one group can differ in srcPort",
            "add srcPort to GROUP BY, or sample by functions of group-by terms",
        ),
        (f"{GROUPS} SAMPLE BY tb", "tb", "cannot be sampled by tb", "no time"),
        (f"{GROUPS} SAMPLE BY count(*)", "count", "aggregate count", "group-by terms"),
        (
            f"{JOIN} SAMPLE BY S.destIP",
            "S.destIP",
            "not known for all packets",
            "functions of srcIP",
        ),
        (
            "SELECT tb, max(len) FROM TCP GROUP BY time/60 AS tb, srcIP ORDER BY tb LIMIT 3 "
            "SAMPLE BY srcIP",
            "srcIP",
            "the first rows of a sample",
            "leave the hint out",
        ),
        (
            f"DEFINE {{ query_name 'flows'; }} {GROUPS} SAMPLE BY srcIP, destIP; "
            "SELECT tb, srcIP, max(cnt) FROM flows GROUP BY tb, srcIP",
            "srcIP",
            "does not estimate it",
            "sample by functions of srcIP",
        ),
        (
            "DEFINE { sampling 'tuples'; } SELECT tb, srcIP, max(len) FROM TCP "
            "GROUP BY time/60 AS tb, srcIP",
            "sampling",
            "sampling by tuples breaks",
            "sample by functions of srcIP",
        ),
        (
            "DEFINE { sampling 'groups'; } SELECT tb, count(*) FROM TCP GROUP BY time/60 AS tb",
            "sampling",
            "no term is the same",
            "sampling 'tuples'",
        ),
        (
            f"DEFINE {{ query_name 'flows'; sampling 'tuples'; }} {GROUPS}; SELECT tb, srcIP, "
            "sum(cnt) FROM flows GROUP BY tb, srcIP SAMPLE BY srcIP",
            "sampling",
            "by tuples, but another",
            "one method",
        ),
        (
            f"DEFINE {{ sampling 'some'; }} {GROUPS}",
            "sampling",
            "expected none, groups or tuples",
            "write",
        ),
        (
            f"DEFINE {{ min_rate 2; }} {GROUPS}",
            "min_rate",
            "above 0 and at most 1",
            "min_rate '5%'",
        ),
        (
            f"DEFINE {{ min_rate '200%'; }} {GROUPS}",
            "min_rate",
            "such as 0.1, '10%'",
            "min_rate '5%'",
        ),
        (f"DEFINE {{ min_rate 'low'; }} {GROUPS}", "min_rate", "got 'low'", "min_rate '5%'"),
        (
            f"DEFINE {{ sampling 'tuples'; }} {GROUPS} SAMPLE BY srcIP",
            "srcIP",
            "samples groups",
            "leave",
        ),
        (
            f"DEFINE {{ sampling 'groups'; }} {GROUPS} NOT SAMPLED",
            "sampling",
            "contradicts",
            "leave",
        ),
        (f"{GROUPS} SAMPLE BY srcIP NOT SAMPLED", "NOT SAMPLED", "in one SELECT", "keep one"),
        (
            "DEFINE { query_name 'syns'; } SELECT tb, count(*) AS cnt FROM TCP "
            "GROUP BY time/60 AS tb; DEFINE { query_name 'pairs'; } SELECT tb, count(*) AS cnt "
            "FROM TCP S JOIN UDP A WHERE S.time = A.time AND S.srcIP = A.destIP "
            "GROUP BY S.time/60 AS tb; DEFINE { sampling 'tuples'; } SELECT A.tb, M.cnt / A.cnt "
            "FROM syns A OUTER_JOIN pairs M WHERE A.tb = M.tb",
            "sampling",
            "it keeps R²",
            "leave the hint out: groups are then kept where rows need them whole",
        ),
        (f"{UNITED} SAMPLE BY destIP", "destIP", "UNION ALL has no column", "available columns"),
        (f"{UNITED} SAMPLE BY time", "time", "cannot be sampled by time", "no time"),
        (f"{UNITED} SAMPLE BY count(*)", "count", "aggregate count", "group-by terms"),
        (f"{MERGED} SAMPLE BY A.srcIP", "A.srcIP", "not those of A", "write srcIP"),
        (
            "SELECT time, len FROM TCP UNION ALL (SELECT time, len FROM UDP SAMPLE BY srcIP)",
            "srcIP",
            "all inputs of a merge",
            "behind the union",
        ),
        (
            f"DEFINE {{ query_name 'flows'; }} {GROUPS} SAMPLE BY srcIP, destIP; "
            "SELECT tb, srcIP, sum(cnt) FROM flows GROUP BY tb, srcIP SAMPLE BY srcIP",
            "srcIP",
            "SAMPLE BY of flows names other terms than query",
            "name the same terms in both",
        ),
    ],
)
def test_a_hint_that_cannot_be_followed_is_an_error_with_place_and_remedy(
    text: str, marked: str, message: str, remedy: str, *, samples: bool
) -> None:
    """Whether packets are sampled or not: a query that is deployed does not fail later."""
    with pytest.raises(GsqlError) as caught:
        compiled(text, samples=samples)
    error = caught.value
    assert message in error.message
    assert remedy in error.remedy
    assert error.position is not None
    assert text[error.position.column - 1 :].startswith(marked)
    assert "^" in error.report()
