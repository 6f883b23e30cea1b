"""The notebook as a page of the site."""

from __future__ import annotations

import json

from notebook import NOTEBOOK


def page() -> str:
    """The page, as Markdown: text, code and stored outputs."""
    parts: list[str] = []
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts.extend(f"```text\n{''.join(out['text']).rstrip()}\n```" for out in cell["outputs"])
    return "\n\n".join(parts) + "\n"
