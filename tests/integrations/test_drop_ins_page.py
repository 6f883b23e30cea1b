"""Every block of docs/drop-ins.md runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from integrations.side_by_side import printed
from lvdet.integrations import patching
from oracles.cases import coco_case, lvis_case

PAGE = Path(__file__).resolve().parents[2] / "docs" / "drop-ins.md"


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    coco, lvis = coco_case(3, masks=False), lvis_case(3, masks=False)
    for name, content in (
        ("instances_val2017.json", coco[0]),
        ("coco_results.json", coco[1]),
        ("lvis_v1_val.json", lvis[0]),
        ("lvis_results.json", lvis[1]),
    ):
        Path(name).write_text(json.dumps(content))
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    text = ""
    for block in blocks:
        text += printed(exec, block, names)[1]
    assert text.count("Average") == 12 + 13
    assert names["COCOeval"].__module__ == "lvdet.integrations.pycocotools.cocoeval"
    assert patching._depth == 0
