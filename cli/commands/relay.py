"""``gscope relay``: rows of other hosts in, merged rows out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gscope.capture.process.confinement.privileges import OF_SUPERVISORS, keep_only
from gscope.cli.commands.input_options import requested_relay, with_inputs
from gscope.cli.commands.option_groups import (
    named_interfaces,
    with_config,
    with_queries,
    with_quiet,
)
from gscope.cli.commands.options import HeadedCommand, option_group
from gscope.cli.commands.run import DeviceRequest, Inputs, answer, with_relay_service
from gscope.cli.completion import candidates
from gscope.cli.config.capture_devices import Overrides
from gscope.cli.config.run_limits import RunLimits
from gscope.cli.config.setting_groups import OF_ANSWERS, OF_CAPTURES, OF_JOBS, OF_SHEDDING
from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.commands.option_groups import OutputRequest
    from gscope.cli.commands.run import ServiceRequest
    from gscope.cli.config.effective import Config
    from gscope.cli.config.relay_inputs import InputRequest
    from gscope.cli.session.request import QueryRequest

_WITHOUT = (*OF_ANSWERS, *OF_SHEDDING, *OF_JOBS, *OF_CAPTURES, "heartbeat.mode")
"""Settings of captures and answers, which mean nothing to a relay."""

with_names = option_group(
    "inputs",
    DeviceRequest,
    named_interfaces(
        "devices",
        "Name of an interface that the queries refer to, as the sensors name it. May be"
        " repeated. Default: one interface that stands for all.",
    ),
)


@click.command(cls=HeadedCommand, short_help="Merge the rows of sensors on other hosts.")
@click.argument("named", nargs=-1, metavar="[QUERY]...", shell_complete=candidates.query_sources)
@with_queries
@with_inputs
@with_names
@with_quiet
@with_relay_service
@with_config(without=_WITHOUT)
def relay(
    request: QueryRequest,
    remote: InputRequest,
    inputs: DeviceRequest,
    output: OutputRequest,
    service: ServiceRequest,
    config: Config,
) -> int:
    """Merge the rows that sensors and other relays serve, and serve the result.

    QUERY is a file or the name of a library query, as given to the sensors. Rows of an aggregation
    wait until every input has sent all rows of their epoch; then those of one group leave as one.
    Needs neither privileges nor Java. Ctrl-C (or SIGTERM) closes all windows, and serves the rest
    until every reader has acknowledged it; a second one exits immediately.

    \b
      gscope relay flows.gsql --from sensor1:9470 --from sensor2:9470 --tls-ca ca.pem \\
          --token-file token --listen 10.0.0.5:9470 --tls-certificate tls.crt --tls-key tls.key

    Exit codes: 0 success, 1 an input or process failed, 2 usage or query error, 3 success but
    rows were lost (--strict), 128+n terminated by signal n.
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    began = time.monotonic()
    keep_only(OF_SUPERVISORS)
    overrides, limits = Overrides(), RunLimits()
    settings = None
    if remote.inputs:
        settings = requested_relay(remote, inputs, overrides, limits, None, config)
    if settings is None:
        message = "a relay reads other hosts; name each with --from HOST:PORT"
        raise UsageError(message)
    return answer(
        Inputs(began, request, inputs, overrides, limits, settings),
        output,
        None,
        replace(service, has_no_job=True),
        config,
    )
