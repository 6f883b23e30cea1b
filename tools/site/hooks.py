"""What mkdocs calls while it builds the site: adds the pages that are made from the code."""

from __future__ import annotations

from typing import Any

import cli_reference
import notebook_page
import output_reference
import python_reference
from mkdocs.structure.files import File, Files
from site_pages import PAGES, ROOT, links_for_site

#: Pages that are generated, by their path on the site.
GENERATED = {
    "reference/cli.md": cli_reference.page,
    "reference/python.md": python_reference.page,
    "reference/outputs.md": output_reference.page,
    "tutorials/notebook.md": notebook_page.page,
}
_NO_RESULTS = """\
# Results

No run of the [paper's experiments](../experiments.md) has been recorded here yet. `make results`
writes this page from the files of runs.
"""


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated pages and those outside `docs`."""
    for path, page in GENERATED.items():
        files.append(File.generated(config, path, content=page()))
    for source, path in PAGES.items():
        if source != "README.md":  # the site has a home page of its own
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, path, content=links_for_site(text, source, path)))
    if files.get_file_from_path("results/index.md") is None:
        files.append(File.generated(config, "results/index.md", content=_NO_RESULTS))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turns links to files outside `docs` into links of the site."""
    path = page.file.src_uri
    if path in GENERATED or (path in PAGES.values() and path != "index.md"):
        return markdown
    return links_for_site(markdown, f"docs/{path}", path)
