"""How the packets of a query set are sampled, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.queries.plan.explain.show_load import show_load
from gscope.queries.plan.program_sampling import SamplingMethod, Standing
from gscope.queries.plan.show_expressions import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.queries.plan.sampling.moving_samples import MovingSample
    from gscope.queries.plan.sampling.report import (
        ComponentReport,
        LeafReport,
        QueryReport,
        SamplingReport,
    )

_METHODS = {SamplingMethod.GROUPS: "groups", SamplingMethod.TUPLES: "single packets"}
_RULES = {
    "whole": "",
    "scaled": " by 1/rate, as counts and sums of what is kept",
    "estimated": ", without a factor",
}
"""What each standing of a column means for its values."""


def show_sampling(
    report: SamplingReport, samples: Sequence[MovingSample], fixed_rates: Mapping[str, str]
) -> dict[str, Any]:
    """Return the report as plain values.

    Args:
        report: the report.
        samples: the components that follow the load.
        fixed_rates: why others cannot, by the names of their LFTAs.
    """
    return {
        "components": [_component(each) for each in report.components],
        "not_sampled": {each.result: list(each.reasons) for each in report.unsampled},
        "sampled_by_load": show_load(samples),
        "not_sampled_by_load": dict(fixed_rates),
    }


def sampling_lines(shown: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of what ``show_sampling`` returned."""
    components = shown["components"]
    for number, component in enumerate(components, start=1):
        if len(components) > 1:
            yield f"component {number}, with a rate of its own"
        for name, leaf in component["lftas"].items():
            terms = f" by {', '.join(leaf['terms'])}" if leaf["terms"] else ""
            yield f"LFTA {name} keeps {leaf['keeps']}{terms}"
            yield f"  {leaf['reason']}"
        for name, query in component["queries"].items():
            yield f"{name}: {query['rows']}"
            yield f"  {query['reason']}"
            for standing, rule in _RULES.items():
                if query[standing] and (
                    standing != "whole" or query["scaled"] or query["estimated"]
                ):
                    yield f"  {standing}{rule}: {', '.join(query[standing])}"
            for basis in dict.fromkeys(query["of_sample"].values()):
                names = [name for name, own in query["of_sample"].items() if own == basis]
                yield f"  {', '.join(names)}: from {basis}"
            if query["compatible"]:
                yield f"  compatible with {', '.join(query['compatible'])}"
        if component["min_rate"]:
            yield f"the rate is at least {component['min_rate']:g}"
    for lftas, rules in shown["sampled_by_load"].items():
        yield f"with --shedding auto, the rate of LFTA {lftas} follows the load"
        for name, rule in rules.items():
            yield f"  {name} is {rule}"
    for lftas, reason in shown["not_sampled_by_load"].items():
        yield f"with --shedding auto, LFTA {lftas} keeps all packets"
        yield f"  {reason}"
    for name, reasons in shown["not_sampled"].items():
        yield f"{name} is not sampled"
        for reason in reasons:
            yield f"  {reason}"


def _component(report: ComponentReport) -> dict[str, Any]:
    return {
        "lftas": {leaf.lfta: _leaf(leaf) for leaf in report.leaves},
        "queries": {query.query: _query(query) for query in report.queries},
        "min_rate": report.min_rate,
    }


def _leaf(leaf: LeafReport) -> dict[str, Any]:
    return {
        "keeps": _METHODS[leaf.method],
        "terms": [show(term) for term in leaf.terms],
        "reason": leaf.reason,
    }


def _query(query: QueryReport) -> dict[str, Any]:
    standings = [standing for _, standing in query.columns]
    is_exact = all(standing is Standing.WHOLE for standing in standings)
    rows = "rows of the full answer" if query.is_whole else "estimates"
    if is_exact and not query.is_whole:
        rows = "groups of the full answer, of which small ones may be missing"
    return {
        "rows": rows,
        "reason": query.reason,
        "whole": _names(query, Standing.WHOLE),
        "scaled": _names(query, Standing.SCALED),
        "estimated": _names(query, Standing.ESTIMATED),
        "of_sample": dict(query.of_sample),
        "compatible": list(query.compatible),
    }


def _names(query: QueryReport, wanted: Standing) -> list[str]:
    described = dict(query.of_sample)
    return [
        name for name, standing in query.columns if standing is wanted and name not in described
    ]
