"""``gscope capture``: an agent, which captures what runs on other hosts ask for."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gscope.capture.process.confinement.privileges import OF_SUPERVISORS, keep_only
from gscope.cli.commands.option_groups import with_config
from gscope.cli.commands.options import HeadedCommand, Lines, option, option_group, quantity
from gscope.cli.completion import candidates
from gscope.cli.config.quantities import parse_ports, parse_positive_duration
from gscope.cli.config.setting_groups import OF_ANSWERS, OF_JOBS, OF_SHEDDING
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config

FORGET_AFTER_NS = 600_000_000_000
"""How long a capture goes on whose host has gone: time to restart that host."""

KEEP_RECORDINGS_NS = 7 * 86_400_000_000_000
"""How long a recording is kept that no run reads: a week, so that disks do not fill unnoticed."""

AGENT_FOLDER = "agent"


@dataclass(frozen=True, slots=True)
class AllowRequest:
    """What an agent allows other hosts.

    Attributes:
        devices: ``[NAME=]DEVICE``.
        captures: ``[NAME=]FILE``.
        ports: the ports at which captures serve; () for any free one.
        forget_after_ns: how long a capture goes on whose host has gone.
        keep_recordings_ns: how long a recording is kept that no run reads.
    """

    devices: tuple[str, ...] = ()
    captures: tuple[str, ...] = ()
    ports: tuple[int, ...] | None = None
    forget_after_ns: int | None = None
    keep_recordings_ns: int | None = None


_WITHOUT = (*OF_ANSWERS, *OF_SHEDDING, *OF_JOBS, "strict", "heartbeat.interval")
"""Settings of answers, and those that the run decides."""

with_allowed = option_group(
    "allowed",
    AllowRequest,
    option(
        "--allow-interface",
        "devices",
        heading="Other hosts",
        metavar="[NAME=]DEVICE",
        multiple=True,
        shell_complete=candidates.devices,
        type=Lines(),
        help="Let other hosts capture on the network device DEVICE, or on the UDP port"
        " udp://ADDRESS:PORT; their queries refer to it as NAME (default: DEVICE, or udp2055). NAME"
        " alone selects an interface of the configuration file, with its settings. May be repeated."
        " Default: the interfaces of the configuration file that have a device.",
    ),
    option(
        "--allow-capture",
        "captures",
        heading="Other hosts",
        metavar="[NAME=]FILE",
        multiple=True,
        shell_complete=candidates.captures,
        type=Lines(),
        help="Let other hosts replay the capture FILE, from its beginning for each run, as the"
        " interface NAME (default: the base name of the file). May be repeated.",
    ),
    option(
        "--capture-ports",
        "ports",
        heading="Other hosts",
        metavar="FIRST-LAST",
        callback=quantity(parse_ports),
        help="Serve the rows of captures at these ports, one for each. Default: any free ports.",
    ),
    option(
        "--forget-after",
        "forget_after_ns",
        heading="Other hosts",
        metavar="DURATION",
        callback=quantity(parse_positive_duration),
        help="End a capture, and discard its rows, when its run has been silent for DURATION."
        " Default: 10min.",
    ),
    option(
        "--keep-recordings",
        "keep_recordings_ns",
        heading="Other hosts",
        metavar="DURATION",
        callback=quantity(parse_positive_duration),
        help="Discard a recording (`gscope run --record`) that no run has read within DURATION."
        " Default: 7d.",
    ),
)


@click.command(cls=HeadedCommand, short_help="Capture what runs on other hosts ask for.")
@with_allowed
@with_config(without=_WITHOUT)
def capture(allowed: AllowRequest, config: Config) -> int:
    """Listen for runs on other hosts (`gscope run --host`), and capture what they ask for.

    A run sends the text of its queries; the agent compiles them itself, captures on the interfaces
    that it allows, and serves the rows. It accepts neither code nor the names of files. Each
    capture is a run of its own, which `gscope status` shows. Ctrl-C (or SIGTERM) closes all
    windows, and serves the rest until every host has it; a second one exits immediately.

    \b
      gscope capture --listen 10.0.0.1:9480 --allow-interface eth0 --token-file token \\
          --tls-certificate tls.crt --tls-key tls.key

    Exit codes: 0 success, 1 the agent failed, 2 usage error, 128+n terminated by a second signal n.
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    keep_only(OF_SUPERVISORS)
    from gscope.cli.agent.agent import Agent, control_settings, ensure_alone
    from gscope.cli.agent.settings import AgentSettings
    from gscope.cli.config.capture_files import ensure_there
    from gscope.cli.config.listening import listen_request, listening
    from gscope.cli.config.shedding import config_of_reader
    from gscope.cli.rundir.run_dir import private_folder
    from gscope.cli.session.folders import prepared

    config = config_of_reader(config)
    request = listen_request(config)
    config = replace(
        config,
        work_dir=private_folder(config.work_dir),
        token_file=request.token.absolute(),
        tls_certificate=None if request.certificate is None else request.certificate.absolute(),
        tls_key=None if request.key is None else request.key.absolute(),
    )
    settings = AgentSettings.of(
        request.address.host, allowed.devices, allowed.captures, config, allowed.ports or ()
    )
    ensure_there(settings.interfaces(config))
    folder = config.work_dir / AGENT_FOLDER
    lock = ensure_alone(folder)
    try:
        with listening(request) as listener:
            prepared(folder, (), config)
            control = control_settings(settings, listener)
            control.write(folder)
            forget_ns = allowed.forget_after_ns or FORGET_AFTER_NS
            keep_ns = allowed.keep_recordings_ns or KEEP_RECORDINGS_NS
            agent = Agent(
                folder,
                config.work_dir,
                settings,
                control,
                forget_ns / 1e9,
                keep_ns / 1e9,
                _notify,
            )
            names = ", ".join(each.name for each in control.interfaces)
            _notify(f"listening at {listener.address}; interfaces: {names}")
            return agent.run()
    finally:
        os.close(lock)


def _notify(text: str) -> None:
    click.echo(f"gscope: {text}", err=True)
