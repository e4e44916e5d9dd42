"""``gscope config``: the effective configuration, and where each value comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gscope.cli.commands.option_groups import with_config
from gscope.cli.commands.options import HeadedCommand
from gscope.cli.config.quantities import show_duration, show_size
from gscope.cli.config.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.capture.settings import DeviceSettings
    from gscope.cli.config.effective import Config
    from gscope.cli.config.setting import Setting


@click.command(cls=HeadedCommand, short_help="Print the effective configuration.")
@with_config()
def config(config: Config) -> None:
    """Print the effective configuration as YAML, with the origin of each value.

    Flags override environment variables, which override gscope.yaml, which overrides defaults.
    """
    if config.path is not None:
        click.echo(f"# {config.path}")
    for line in config_lines(config):
        click.echo(line)


def config_lines(config: Config) -> Iterator[str]:
    """Yield the lines of a ``gscope.yaml`` that gives this configuration."""
    section = ""
    for setting in sorted(SETTINGS, key=lambda s: ("." in s.key, s.key)):
        above, dot, name = setting.key.rpartition(".")
        if above != section:
            section = above
            yield f"{section}:"
        indent = "  " if dot else ""
        if setting.kind.is_list:
            lines = setting.kind.show(getattr(config, setting.attribute)).splitlines()
            listed = ", ".join(map(_scalar, lines))
            yield f"{indent}{name}: [{listed}]  # {config.origins[setting.key]}"
            continue
        if setting.kind.is_repeated:
            yield f"{indent}{name}:  # {config.origins[setting.key]}"
            entries = getattr(config, setting.attribute).items()
            yield from (f"{indent}  {_scalar(key)}: {_scalar(value)}" for key, value in entries)
            continue
        yield f"{indent}{name}: {_value(config, setting)}  # {config.origins[setting.key]}"
    if config.interfaces:
        yield "interfaces:"
    for name, interface in config.interfaces.items():
        yield f"  {_scalar(name)}:"
        if interface.files:
            yield f"    files: [{', '.join(map(_scalar, interface.files))}]"
        if interface.device is not None:
            yield from _device_lines(interface.device)
        mark = "# " if interface.skew_ns is None else ""
        yield f"    {mark}skew: {show_duration(interface.effective_skew_ns)}"
        if interface.is_latent:
            yield "    latent: true"
    if config.hosts:
        yield "hosts:"
    for name, host in config.hosts.items():
        yield f"  {_scalar(name)}:"
        yield f"    address: {_scalar(str(host.address))}"
        if host.token_file is not None:
            yield f"    token_file: {_scalar(str(host.token_file))}"
        if host.certificates is not None:
            yield f"    tls_ca: {_scalar(str(host.certificates))}"
    if config.sets:
        yield "sets:"
    for name, members in config.sets.items():
        yield f"  {_scalar(name)}: [{', '.join(map(_scalar, members))}]"
    if config.udf:
        yield f"udf: [{', '.join(map(_scalar, config.udf))}]"


def _device_lines(device: DeviceSettings) -> Iterator[str]:
    yield f"    device: {_scalar(device.device)}"
    yield f"    snaplen: {device.snaplen}"
    yield f"    ring: {show_size(device.ring_bytes)}"
    yield f"    promiscuous: {str(device.is_promiscuous).lower()}"
    if device.filter:
        yield f"    filter: {_scalar(device.filter)}"
    yield f"    fanout: {device.fanout}"
    yield f"    source: {device.source}"
    yield f"    timestamps: {device.timestamps}"
    yield f"    kernel_filter: {str(device.has_kernel_filter).lower()}"


def _value(config: Config, setting: Setting) -> str:
    value = getattr(config, setting.attribute)
    return _scalar(setting.default_text if value is None else setting.kind.show(value))


def _scalar(text: str) -> str:
    """Return text as YAML reads it back."""
    import json

    plain = text.replace("_", "").replace("-", "").replace(".", "").replace("/", "")
    return text if plain.isalnum() and text[0] != "-" else json.dumps(text)
