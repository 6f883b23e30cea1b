"""patch() and unpatch(), and what importing the drop-ins loads."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Iterator

import pycocotools
import pycocotools.coco
import pycocotools.cocoeval
import pytest

from lvdet.integrations import patch, patching, unpatch
from lvdet.integrations.pycocotools.coco import COCO
from lvdet.integrations.pycocotools.cocoeval import COCOeval

#: Names as other modules import them.
held = types.ModuleType("held")


@pytest.fixture(autouse=True)
def importer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    held.COCO = pycocotools.coco.COCO
    held.tools = pycocotools
    held.mask_utils = pycocotools.mask
    held.encode = pycocotools.mask.encode
    held.other = len
    monkeypatch.setitem(sys.modules, "held", held)
    yield
    while patching._depth:
        unpatch()


def test_patch_replaces_modules_and_names_and_unpatch_puts_them_back() -> None:
    before = {name: sys.modules.get(name) for name in patching.MODULES}
    names = dict(vars(held))
    patch()
    from lvis import LVIS
    from pycocotools import coco, mask

    assert coco.COCO is COCO
    assert LVIS.__module__ == "lvdet.integrations.lvis.lvis"
    assert held.COCO is COCO
    assert held.tools.cocoeval.COCOeval is COCOeval
    assert held.mask_utils is mask
    assert held.encode is mask.encode
    assert held.other is len
    unpatch()
    assert {name: sys.modules.get(name) for name in patching.MODULES} == before
    assert dict(vars(held)) == names
    assert pycocotools.coco.COCO is not COCO


def test_calls_nest() -> None:
    unpatch()  # nothing to undo
    original = held.COCO
    patch()
    patch()
    unpatch()
    assert held.COCO is COCO
    unpatch()
    assert held.COCO is original
    unpatch()
    assert held.COCO is original


def test_a_name_that_was_changed_meanwhile_stays() -> None:
    patch()
    held.COCO = str
    unpatch()
    assert held.COCO is str


def run_python(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout


def test_the_drop_ins_need_neither_the_packages_nor_torch() -> None:
    program = """
import sys
for name in ("pycocotools", "lvis", "torch", "matplotlib", "cv2", "scipy", "plotly"):
    sys.modules[name] = None  # not installed
import lvdet.integrations.lvis, lvdet.integrations.pycocotools
print("loaded")
"""
    assert run_python(program) == "loaded\n"


def test_scripts_run_where_the_packages_are_not_installed() -> None:
    program = """
import sys, importlib.abc
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("pycocotools", "lvis"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import lvdet.integrations
lvdet.integrations.patch()
import pycocotools.mask as mask_utils
from pycocotools.cocoeval import COCOeval, Params
from pycocotools import mask
from lvis import LVIS, LVISEval, LVISResults, LVISVis
from lvis.eval import LVISEval as same
print(mask is mask_utils, same is LVISEval)
lvdet.integrations.unpatch()
try:
    import pycocotools.mask
except ModuleNotFoundError as error:
    print("gone", error)
"""
    assert run_python(program) == "True True\ngone pycocotools\n"
