"""What `--output` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_json(content: dict[str, Any], path: Path) -> None:
    """Writes JSON, whole or not at all."""
    from lvdet.files.writing import write_whole

    with write_whole(path) as file:
        text = json.dumps(content, indent=2, ensure_ascii=False)
        file.write(text.encode(errors="replace") + b"\n")
