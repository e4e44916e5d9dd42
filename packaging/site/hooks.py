"""What the site needs beyond MkDocs: pages outside ``docs/``, anchors, and colours for GSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gsql_lexer
import links
import sources
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

BOOSTS = (("gsql", 4), ("cookbook", 3), ("decisions/0", 0.25), (links.SOURCES, 0.5))
"""By how much pages whose paths start so rank higher in the search than others: the language
first."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set what YAML cannot say: the anchors of headings, the lexer, and the version shown."""
    gsql_lexer.register()
    config.mdx_configs.setdefault("toc", {})["slugify"] = links.slug
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the style sheet, and the pages that stand for files outside ``docs/``."""
    style = links.ROOT / "packaging" / "site" / "site.css"
    files.append(File.generated(config, "site.css", abs_src_path=str(style)))
    for page in links.documents():
        if files.get_file_from_path(page) is None:
            files.append(File.generated(config, page, content=links.read(page)))
    for path in links.linked_sources():
        content = sources.source_page(path)
        files.append(File.generated(config, links.page_of(path), content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Point the links of documents to pages of the site, and rank the page in the search."""
    path = page.file.src_uri
    boost = next((boost for start, boost in BOOSTS if path.startswith(start)), 1)
    page.meta.setdefault("search", {}).setdefault("boost", boost)
    return markdown if path.startswith(links.SOURCES) else links.with_site_links(path, markdown)
