"""The same script run with a reference package and with its drop-in."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pycocotools.coco
import pycocotools.cocoeval

from lvdet.integrations import lvis as lvis_drop_in
from lvdet.integrations import pycocotools as coco_drop_in
from oracles.lvis_reference import LVIS, LVISEval, LVISResults  # makes lvis importable

Json = dict[str, Any]
#: (COCO, COCOeval) of each side, and (LVIS, LVISResults, LVISEval).
COCO_SIDES = (
    (pycocotools.coco.COCO, pycocotools.cocoeval.COCOeval),
    (coco_drop_in.COCO, coco_drop_in.COCOeval),
)
LVIS_SIDES = (
    (LVIS, LVISResults, LVISEval),
    (lvis_drop_in.LVIS, lvis_drop_in.LVISResults, lvis_drop_in.LVISEval),
)


def printed(script: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    """What a script returns, and what it prints, without the times."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        result = script(*arguments)
    return result, re.sub(r"t=[\d.]+s", "t=", out.getvalue())


def indexed(coco: Any, dataset: Json) -> Any:
    """A COCO of either side over a dataset in memory."""
    made = coco()
    made.dataset = json.loads(json.dumps(dataset))
    made.createIndex()
    return made


def assert_same_records(ours: Any, reference: Any) -> None:
    """The items of evalImgs: the same keys and values, in the same order."""
    assert len(ours) == len(reference)
    for mine, theirs in zip(ours, reference, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is None:
            continue
        assert list(mine) == list(theirs)
        for key, value in theirs.items():
            np.testing.assert_array_equal(mine[key], value, err_msg=key)
            assert np.shape(mine[key]) == np.shape(value), key
            if isinstance(value, np.ndarray) and value.size:
                assert mine[key].dtype == value.dtype, key
