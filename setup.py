"""The wheel's manual pages, made from the help of the commands; all else is in pyproject.toml."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
PAGES = "build/man"


def written_pages() -> list[str]:
    """Write the pages, and return their paths from here."""
    sys.path.insert(0, str(ROOT / "src"))
    pages = importlib.import_module("gscope.cli.manual.pages")
    top = importlib.import_module("gscope.cli.main").cli
    (ROOT / PAGES).mkdir(parents=True, exist_ok=True)
    names = pages.page_names(top)
    for name, command in names.items():
        path = ROOT / PAGES / f"{name}.{pages.SECTION}"
        path.write_text(pages.page(top, command), encoding="ascii")
    return [f"{PAGES}/{name}.{pages.SECTION}" for name in names]


setup(data_files=[("share/man/man1", written_pages())])
