"""``gscope explain`` and the kernel filter."""

from __future__ import annotations

from gscope.cli.render.explain import as_text, explain_compiled
from gscope.queries.compile import CompileContext, Compiled, QueryText, compile_queries


def compiled(text: str, *interfaces: str) -> Compiled:
    return compile_queries([QueryText(text, "test")], CompileContext(interfaces))


def test_explain_shows_it() -> None:
    text = "SELECT time FROM UDP WHERE destPort = 53"
    explained = explain_compiled(compiled(text, "main"))
    assert explained["kernel_filter"] == {"main": "protocol = 17 AND destPort = 53"}
    assert "  main: protocol = 17 AND destPort = 53" in list(as_text(explained))
    without = explain_compiled(compiled(text))
    assert without["kernel_filter"] == {"any interface": "protocol = 17 AND destPort = 53"}
    every = explain_compiled(compiled("SELECT time FROM PKT", "main"))
    assert every["kernel_filter"] == {}
    assert not [line for line in as_text(every) if "Kernel filter" in line]
