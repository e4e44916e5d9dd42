"""What gscope needs is there.

Versions within their bounds, and the private interfaces that it uses. ``make newest`` installs the
newest versions that the bounds allow into an environment of its own and runs this and the tests
that lean on them.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRAS = PROJECT["optional-dependencies"]
ALL = {
    Requirement(text).name
    for texts in (PROJECT["dependencies"], *EXTRAS.values())
    for text in texts
}
RECORD = ROOT / "docs" / "decisions" / "0003-dependencies.md"
PRIVATE_USE = {"numba", "pyspark"}
"""Packages of which gscope uses what they do not promise; they need an upper bound."""


def constraints() -> dict[str, Requirement]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.name): pin for pin in pins}


@pytest.mark.parametrize("needed", NEEDED, ids=lambda needed: needed.name)
def test_the_installed_version_is_within_its_bounds(needed: Requirement) -> None:
    assert needed.specifier.contains(version(needed.name), prereleases=True)


@pytest.mark.parametrize("needed", NEEDED, ids=lambda needed: needed.name)
def test_a_tested_version_is_on_record(needed: Requirement) -> None:
    pin = constraints()[canonicalize_name(needed.name)]
    (exact,) = pin.specifier
    assert exact.operator == "=="
    assert needed.specifier.contains(exact.version)


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_record_of_decisions_names_each_dependency(name: str) -> None:
    words = re.findall(r"[\w-]+", RECORD.read_text(encoding="utf-8"))
    assert canonicalize_name(name) in map(canonicalize_name, words)


def test_private_use_has_an_upper_bound() -> None:
    bounds = {r.name: {s.operator for s in r.specifier} for r in NEEDED}
    assert {name for name in PRIVATE_USE if "<" not in bounds[name]} == set()


@pytest.mark.parametrize(
    ("module", "path"),
    [
        # capture/kernels/jit.py: a cache of our own in a dispatcher.
        ("numba.core.caching", "FunctionCache.load_overload"),
        ("numba.core.caching", "FunctionCache.save_overload"),
        ("numba.core.caching", "FunctionCache.cache_path"),
        ("numba.core.dispatcher", "Dispatcher.enable_caching"),
        ("numba.core.dispatcher", "Dispatcher.compile"),
        ("numba.core.dispatcher", "Dispatcher.get_call_template"),
        ("numba.core.dispatcher", "Dispatcher.nopython_signatures"),
        ("numba.core.config", "CACHE_DIR"),
        ("numba.core.cgutils", "alloca_once"),
        ("numba.core.types", "int64"),
        ("numba.extending", "intrinsic"),
        ("llvmlite.ir", "IRBuilder.load_atomic"),
        # engine/spark/: the gateway, the context and the daemon of Python workers.
        ("pyspark", "SparkContext._gateway"),
        ("pyspark", "SparkContext._jvm"),
        ("pyspark", "SparkContext._active_spark_context"),
        ("pyspark.java_gateway", "launch_gateway"),
        ("pyspark.daemon", "manager"),
        ("pyspark.worker", "main"),
        ("pyspark.accumulators", "AccumulatorParam.addInPlace"),
        ("pyspark.sql.pandas.functions", "arrow_udf"),
    ],
)
def test_what_gscope_uses_is_there(module: str, path: str) -> None:
    found: Any = import_module(module)
    for name in path.split("."):
        assert hasattr(found, name), f"{module} has no {path}"
        found = getattr(found, name)


@pytest.mark.parametrize("attribute", ["_jsc", "_accumulatorServer", "_gateway", "_jvm"])
def test_a_spark_context_keeps_what_gscope_resets(attribute: str) -> None:
    context: Any = import_module("pyspark").SparkContext
    assert f"self.{attribute}" in inspect.getsource(context) or hasattr(context, attribute)


def test_a_dispatcher_has_the_cache_that_gscope_replaces() -> None:
    numba: Any = import_module("numba")

    def plain(x: int) -> int:
        return x

    assert hasattr(numba.njit(plain), "_cache")
    caching: Any = import_module("numba.core.caching")
    parameters = inspect.signature(caching.FunctionCache.load_overload).parameters
    assert list(parameters) == ["self", "sig", "target_context"]
    assert list(inspect.signature(caching.FunctionCache.save_overload).parameters) == [
        "self",
        "sig",
        "data",
    ]
