"""The modules of ``packaging/site``, which are scripts of MkDocs and belong to no package."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.requirements import ROOT

if TYPE_CHECKING:
    from types import ModuleType

SITE = ROOT / "packaging" / "site"


def site_module(name: str) -> ModuleType:
    """Return a module of the site, as MkDocs imports it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SITE)
        module = importlib.import_module(name)
    assert str(module.__file__) == str(SITE / f"{name}.py"), f"another {name} was imported before"
    del sys.modules[name]
    return module
