"""Application-layer functions on Spark.

Values, and a count of the payloads that could not be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.engine.spark.sql.expressions import column_leaf, to_sql
from gscope.engine.spark.sql.udf import register_functions
from gscope.queries.catalog.evaluate import call
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Call, Column, Literal, PacketField
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = Column("d", GsqlType.STRING, is_nullable=True)


@pytest.mark.spark
def test_what_cannot_be_read_is_null_and_counted_once_for_each_row(spark: SparkSession) -> None:
    request = "GET / HTTP/1.1\r\nHost: \u00e9.example\r\n\r\n"
    rows = [(request,), (request,), ("nonsense",), ("nonsense",), ("",), (None,), ("\u00ff\u0000",)]
    spark.createDataFrame(rows, "d STRING").coalesce(1).createOrReplaceTempView("payloads")
    expressions = [call("http_host", DATA), call("tls_sni", DATA), call("dns_rcode", DATA)]
    registered = register_functions(spark, expressions)
    assert registered.total().undecodable == {}
    texts = ", ".join(f"{to_sql(e, column_leaf)} AS x{n}" for n, e in enumerate(expressions))
    answer = spark.sql(f"SELECT {texts} FROM payloads").toArrow().to_pydict()
    assert answer["x0"] == ["\u00e9.example"] * 2 + [None] * 5
    assert answer["x1"] == [None] * 7
    counts = registered.total()
    # "nonsense" and two bytes are too short for a header of DNS.
    assert counts.undecodable == {"dns_rcode": 3}
    assert counts.foreign == {"dns_rcode": 2, "http_host": 3, "tls_sni": 5}


def test_an_lfta_ships_no_more_of_a_payload_than_is_looked_at() -> None:
    text = (
        "SELECT time, dns_qname(UDP_data) as q, dns_qtype(UDP_data) as t FROM UDP"
        " WHERE destPort = 53"
    )
    program = compile_queries([QueryText(text, "q")], CompileContext(("main1",))).program
    (lfta,) = program.lftas
    shipped = [column.expression for column in lfta.columns]
    assert len(shipped) == 2
    match shipped[1]:
        case Call("str_truncate", (PacketField("UDP_data"), Literal(1500))):
            assert lfta.predicate is not None
        case other:
            pytest.fail(f"{other} is shipped")
