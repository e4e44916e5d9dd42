"""Golden kernels.

Queries in ``kernels/<case>.gsql``, the source generated for each in ``<case>.kernel``. A change of
the code generator thus shows as a diff of code that people can read. The part that all kernels have
in common is in ``preamble.kernel``, once. ``python -m tests.capture.lfta.kernel_cases`` rewrites
the sources from what is generated now.
"""

from __future__ import annotations

from pathlib import Path

from gscope.capture.lfta.codegen.generate import PREAMBLE, generate
from gscope.queries.compile import CompileContext, QueryText, compile_queries

FOLDER = Path(__file__).parent / "kernels"
SAMPLED = "sampled"
"""Prefix of the cases whose packets are sampled; the others have the kernels of runs without."""
CASES = tuple(sorted(path.stem for path in FOLDER.glob("*.gsql")))


def generated(case: str) -> str:
    """Return the source that is generated for ``case``, without the preamble."""
    query = QueryText((FOLDER / f"{case}.gsql").read_text(), case)
    context = CompileContext(("main",), samples=case.startswith(SAMPLED))
    lftas = compile_queries([query], context).program.lftas
    source = generate(sorted(lftas, key=lambda lfta: lfta.name)).source
    assert source.count(PREAMBLE) == 1
    return source.replace(PREAMBLE, "")


def golden(case: str) -> Path:
    """Return the file with the source expected for ``case``."""
    return FOLDER / f"{case}.kernel"


def _main() -> None:
    golden("preamble").write_text(PREAMBLE)
    for case in CASES:
        golden(case).write_text(generated(case))
        print(golden(case).name)  # noqa: T201


if __name__ == "__main__":
    _main()
