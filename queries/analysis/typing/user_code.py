"""User code for queries: its declarations are tested and entered into the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.queries.analysis.typing.calls import BUILDERS, catalog_builder
from gscope.queries.catalog.user_functions import install as user_install
from gscope.queries.catalog.user_functions.calls import UserScalar
from gscope.queries.catalog.user_functions.checks import check_facts
from gscope.queries.gsql.scanner import RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.queries.catalog.user_functions.files import UserFile


def offer(files: Iterable[UserFile]) -> None:
    """Let queries call what ``files`` declare.

    Raises:
        UsageError: a file is wrong, or declares a fact that an example contradicts.
    """
    taken = {*BUILDERS, *(word.lower() for word in RESERVED)}
    try:
        for code in user_install.install(files, taken):
            check_facts(code)
            if isinstance(code, UserScalar):
                BUILDERS[code.facts.name] = catalog_builder(code.facts.name)
    except UsageError:
        withdraw()
        raise


def withdraw() -> None:
    """Remove what every ``offer`` entered."""
    for code in user_install.installed():
        if isinstance(code, UserScalar):
            BUILDERS.pop(code.facts.name, None)
    user_install.uninstall()
