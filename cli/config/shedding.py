"""How a run samples packets, from the settings ``shedding.mode`` and ``shedding.rate``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config
    from gscope.queries.plan.program import Program

MODE, RATE = "shedding.mode", "shedding.rate"


def imply_mode(values: dict[str, Any], origins: dict[str, str]) -> None:
    """Turn sampling on if a rate is given more directly than the mode.

    ``--sample-rate`` overrides ``mode: off`` of the file; a rate without any mode implies FIXED.

    Args:
        values: the settings by attribute, in which the mode is replaced.
        origins: where they come from, by key, in which that of the mode is replaced.
    """
    is_given = values["sample_rate"] is not None
    if is_given and _directness(origins[RATE]) > _directness(origins[MODE]):
        values["shedding_mode"] = SheddingMode.FIXED
        origins[MODE] = origins[RATE]


def _directness(origin: str) -> int:
    if origin.startswith("--"):
        return 3
    if origin.startswith("$"):
        return 2
    return 0 if origin == "default" else 1


def chosen_shedding(config: Config) -> SheddingSettings:
    """Return whether a run samples, and at which rate; each run adds a seed of its own.

    Raises:
        UsageError: the mode needs a rate and there is none, or it finds its own and one is given.
    """
    if config.shedding_mode is SheddingMode.OFF:
        return SheddingSettings()
    if config.shedding_mode is SheddingMode.AUTO:
        _ensure_no_rate(config)
        return SheddingSettings(config.shedding_mode, min_rate=config.min_sample_rate)
    if config.sample_rate is None:
        message = (
            f"{config.origins[MODE]}: the mode {config.shedding_mode} needs a rate; add"
            " --sample-rate 0.1, or `rate: 0.1` below shedding in the file"
        )
        raise UsageError(message)
    return SheddingSettings(config.shedding_mode, config.sample_rate)


def _ensure_no_rate(config: Config) -> None:
    rate, mode = config.origins[RATE], config.origins[MODE]
    if config.sample_rate is not None and _directness(rate) >= _directness(mode):
        message = (
            f"{rate}: the mode auto finds its own rate; drop it, or use --shedding fixed."
            " --min-rate sets the least rate"
        )
        raise UsageError(message)


def config_of_replay(config: Config) -> Config:
    """Return the settings of a replay, which waits for its queries and is never overloaded.

    Raises:
        UsageError: a flag or the environment asks for a sample that follows the load.
    """
    if config.shedding_mode is not SheddingMode.AUTO:
        return config
    return _without_shedding(
        config,
        "auto follows the load of a live capture, and a replay has none; use --sample-rate to"
        " answer from a sample",
    )


def config_of_reader(config: Config) -> Config:
    """Return the settings of a run that reads the rows of other hosts: it samples nothing.

    What the file says of sampling is meant for runs that capture.

    Raises:
        UsageError: a flag or the environment asks for a sample.
    """
    if config.shedding_mode is SheddingMode.OFF:
        return config
    return _without_shedding(
        config,
        "packets are sampled where they are captured, and a run that reads other hosts captures"
        " none",
    )


def ensure_unsampled(config: Config) -> None:
    """Refuse to sample in a sensor, whose readers would not know the rate.

    Raises:
        UsageError: the settings ask for a sample.
    """
    if chosen_shedding(config).is_on:
        message = (
            f"{config.origins[MODE]}: a sensor does not sample, because readers of its rows would"
            " not know the rate; add --shedding off, or answer the queries on this host"
        )
        raise UsageError(message)


def _without_shedding(config: Config, refusal: str) -> Config:
    """Return the settings without the sample for which the file asks.

    Raises:
        UsageError: a flag or the environment asks for it, which is refused.
    """
    origin = config.origins[MODE]
    if _directness(origin) > _directness("a file"):
        message = f"{origin}: {refusal}"
        raise UsageError(message)
    return replace(config, shedding_mode=SheddingMode.OFF, sample_rate=None)


def ensure_allowed(program: Program, shedding: SheddingSettings) -> None:
    """Refuse a rate that is below the least one that a query of the program allows.

    Raises:
        UsageError: the rate is too low.
    """
    if shedding.mode is SheddingMode.AUTO:
        return
    for component in program.sampling:
        if shedding.is_on and shedding.rate < component.min_rate:
            queries = ", ".join(node.query for node in component.nodes) or "a query"
            message = (
                f"the rate {shedding.rate:g} is below min_rate {component.min_rate:g} of {queries};"
                f" choose at least --sample-rate {component.min_rate:g}"
            )
            raise UsageError(message)
