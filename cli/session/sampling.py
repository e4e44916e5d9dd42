"""The sample of a run: its secret seed, which a resumed run keeps."""

from __future__ import annotations

import functools
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gscope.capture.settings import CaptureSettings
from gscope.capture.shedding.settings import SEED_BYTES, SheddingMode, SheddingSettings
from gscope.cli.config.shedding import chosen_shedding
from gscope.errors import UsageError
from gscope.queries.run_folder.layout import CAPTURE_SETTINGS_FILE

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config
    from gscope.cli.rundir.run_dir import RunDir
    from gscope.queries.plan.program import Input, Program

_NAMES_SHOWN = 5


def unsampled(program: Program) -> tuple[str, ...]:
    """Return the results that read no LFTA that samples."""
    from gscope.queries.plan.program import StreamInput, node_inputs

    nodes = {node.query: node for node in program.nodes}

    @functools.cache
    def is_sampled(source: Input) -> bool:
        if isinstance(source, StreamInput):
            return program.lfta(source.lfta).sampling is not None
        return any(is_sampled(each) for each in node_inputs(nodes[source.query]))

    return tuple(name for name, source in program.results if not is_sampled(source))


def warn_of_unsampled(config: Config, program: Program) -> None:
    """Warn, on standard error, of results that are not sampled."""
    shedding = chosen_shedding(config)
    if not shedding.is_on:
        return
    if shedding.mode is SheddingMode.AUTO:
        from gscope.queries.plan.sampling.moving_samples import moving_samples

        for lftas, reason in moving_samples(program)[1].items():
            click.echo(f"warning: --shedding auto keeps all packets of {lftas}: {reason}", err=True)
    if names := unsampled(program):
        listed = ", ".join(names[:_NAMES_SHOWN])
        if len(names) > _NAMES_SHOWN:
            listed += f" and {len(names) - _NAMES_SHOWN} more"
        click.echo(
            f"warning: all packets are processed for {listed}, which cannot be sampled;"
            " `gscope explain --sample-rate` says why",
            err=True,
        )


def ensure_same_sample(config: Config, run_dir: RunDir, program: Program) -> None:
    """Refuse to resume a run with another rate, or to begin or end to sample.

    The groups of epochs that were open when it was interrupted would be counted in part. Settings
    that cannot be read are those of another version, which ``ensure_same`` reports.

    Raises:
        UsageError: the run sampled otherwise.
    """
    try:
        earlier = _earlier(run_dir)
    except UsageError:
        return
    chosen = _chosen(config, program)
    if earlier is None or (chosen.mode, chosen.rate) == (earlier.mode, earlier.rate):
        return
    run_dir.hand_back_if_resumed()
    message = (
        f"cannot resume {run_dir.name}: it ran with {_described(earlier)}, and would now run"
        f" with {_described(chosen)}; give the same settings, choose another name with --run, or"
        f" discard its unanswered data with `gscope stop --run {run_dir.name}`"
    )
    raise UsageError(message)


def shedding_of_run(config: Config, run_dir: RunDir, program: Program) -> SheddingSettings:
    """Return how a run samples, with its seed; a resumed run keeps the one that it had."""
    chosen = _chosen(config, program)
    if not chosen.is_on:
        return chosen
    earlier = _earlier(run_dir)
    if earlier is not None:
        return replace(chosen, seed=earlier.seed)
    return replace(chosen, seed=int.from_bytes(secrets.token_bytes(SEED_BYTES), "little"))


def _chosen(config: Config, program: Program) -> SheddingSettings:
    """Return what the user chose; OFF for a program that cannot be sampled."""
    return chosen_shedding(config) if program.sampling else SheddingSettings()


def _earlier(run_dir: RunDir) -> SheddingSettings | None:
    """Return how the processes of a resumed run sampled; None for a run that never captured.

    Raises:
        UsageError: its settings cannot be read.
    """
    if run_dir.resumed is None:
        return None
    try:
        text = (run_dir.path / CAPTURE_SETTINGS_FILE).read_bytes()
    except FileNotFoundError:
        return None
    return CaptureSettings.from_json(text).shedding or SheddingSettings()


def _described(shedding: SheddingSettings) -> str:
    if not shedding.is_on:
        return "sampling off"
    if shedding.mode is SheddingMode.AUTO:
        return "a rate that follows the load"
    return f"the sample rate {shedding.rate:g}"
