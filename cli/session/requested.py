"""The queries that another host asks an agent to capture for, or to answer.

They are compiled here and compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.capture.log.description import lfta_difference
from gscope.cli.session.compile_request import offer_user_code
from gscope.errors import StreamError
from gscope.queries.analysis.typing.lookups import offer_all
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.partitioning.host_answers import host_program, of_host
from gscope.queries.plan.windows.window_plan import WindowPlan

if TYPE_CHECKING:
    from gscope.capture.log.agent.messages import CaptureRequest
    from gscope.cli.config.effective import Config
    from gscope.queries.plan.program import Program


def compile_requested(request: CaptureRequest, config: Config) -> Program:
    """Return the program of a request, of which only the interfaces of this host are captured.

    Raises:
        StreamError: it is compiled to something else here than on the host that asks.
        GscopeError: a query is invalid, or calls user code that this host lacks.
    """
    files = offer_user_code(config)
    offer_all()
    try:
        plan = WindowPlan(request.window_plan)
    except ValueError as error:
        message = f"invalid request: {error}"
        raise StreamError(message) from error
    context = CompileContext(
        interfaces=request.interfaces,
        interface_sets=request.sets,
        parameters=request.parameters,
        only=request.delivered,
        is_unbounded=True,
        is_resumable=True,
        window_plan=plan,
        partitions=config.partitions if request.answered else 1,
        hosts=request.hosts,
    )
    texts = [QueryText(each.text, each.source) for each in request.texts]
    program = replace(compile_queries(texts, context).program, user_files=files)
    if request.answered:
        try:
            program = host_program(program, request.answered)
        except KeyError as error:
            message = f"invalid request: the queries have no operator {error}"
            raise StreamError(message) from error
    _ensure_same(program, request)
    return of_host(program, request.host)


def _ensure_same(program: Program, request: CaptureRequest) -> None:
    """Refuse a request whose host compiled other LFTAs of the same texts.

    Raises:
        StreamError: it did; the message names the first difference.
    """
    remedy = "use the same version of gscope, parameters and user code on both hosts"
    theirs = {each.name: each for each in request.lftas}
    lftas = program.lftas if program.served is None else program.served
    ours = {each.name: each for each in lftas}
    for name in (*theirs, *ours):
        if name not in ours or name not in theirs:
            where = "the host that asks" if name in theirs else f"host {request.host}"
            message = f"only {where} compiled the queries to an LFTA {name!r:.100}; {remedy}"
            raise StreamError(message)
        if (found := lfta_difference(ours[name], program.user_files, theirs[name])) is not None:
            message = f"host {request.host} compiled {name} differently: {found}; {remedy}"
            raise StreamError(message)
        if ours[name].streams != theirs[name].streams:
            message = f"host {request.host} attaches {name} to other interfaces; {remedy}"
            raise StreamError(message)
