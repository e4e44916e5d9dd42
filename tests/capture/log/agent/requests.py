"""A request as a run sends it."""

from __future__ import annotations

import json
from typing import Any

from gscope import __version__
from gscope.capture.log.agent.messages import CaptureRequest, RequestedText
from gscope.capture.log.description import describe_program
from gscope.queries.compile import CompileContext, QueryText, compile_queries

QUERY = "DEFINE { query_name q; } SELECT tb, count(*) FROM IP GROUP BY time/60 AS tb"
INTERFACES = ("a.up", "b.down")


def request(text: str = QUERY, **changes: Any) -> dict[str, Any]:
    """Return the request for host a, as an object of JSON."""
    context = CompileContext(
        interfaces=INTERFACES, is_unbounded=True, is_resumable=True, hosts=("a", "b")
    )
    program = compile_queries([QueryText(QUERY, "query")], context).program
    made = CaptureRequest(
        gscope=__version__,
        host="a",
        interfaces=INTERFACES,
        hosts=("a", "b"),
        texts=(RequestedText(text, "query"),),
        lftas=describe_program(program),
    )
    return {**json.loads(made.to_json()), **changes}
