"""Which queries of a run its hosts answer, if packets are divided among them by a known set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.queries.analysis.partitioning.given import given_set
from gscope.queries.analysis.partitioning.on_hosts import queries_on_hosts
from gscope.queries.plan.partitioning.host_answers import host_plan

if TYPE_CHECKING:
    from gscope.cli.render.progress import RunObserver
    from gscope.cli.session.hosts import HostsOfRun
    from gscope.queries.compile import Compiled
    from gscope.queries.plan.program import Program

OPTION = "--partition-set"


def shared_with_hosts(compiled: Compiled, hosts: HostsOfRun, observer: RunObserver) -> Program:
    """Return what the run itself executes, and report which operators the hosts do not evaluate.

    Raises:
        GsqlError: the set is invalid.
        UsageError: packets are sampled.
    """
    given = given_set(hosts.partition_set, OPTION)
    program = compiled.program
    if program.sampling:
        message = f"{OPTION} and a sample of packets exclude each other"
        raise UsageError(message)
    results = tuple(name for name, _ in program.results)
    on_hosts = queries_on_hosts(compiled.stages[0][1], results, given, len(hosts.names))
    plan = host_plan(program, on_hosts, hosts.names)
    for query, reason in plan.kept.items():
        observer.on_notice(f"{query} is evaluated here: {reason}")
    for query in plan.chosen:
        observer.on_notice(
            f"hosts send the first rows of {query}, the first of all are chosen here"
        )
    return plan.run
