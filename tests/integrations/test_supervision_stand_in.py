"""supervision's `Detections` by a stand-in; tests/frameworks has the package itself."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lvdet
from lvdet.errors import InputError
from lvdet.integrations.supervision import detections_from_supervision, detections_to_supervision


@dataclass
class Found:
    """What the adapter reads and makes."""

    xyxy: Any
    mask: Any = None
    confidence: Any = None
    class_id: Any = None
    data: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.xyxy)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "supervision", SimpleNamespace(Detections=Found))


CORNERS = np.array([[1.0, 2, 5, 9], [0, 0, 4, 4]])
PIXELS = np.zeros((2, 10, 8), dtype=bool)
PIXELS[0, 2:9, 1:5] = PIXELS[1, :4, :4] = True


def two(mask: Any = None) -> Found:
    return Found(CORNERS, mask, np.array([0.5, 0.25]), np.array([3, 1]))


@pytest.mark.parametrize("mask", [None, PIXELS])
def test_there_and_back(mask: Any) -> None:
    nothing = Found(np.zeros((0, 4)))
    table = detections_from_supervision({7: two(mask), 3: nothing})
    assert table.image_ids[table.image].tolist() == [7, 7]
    assert table.box.tolist() == [[1, 2, 4, 7], [0, 0, 4, 4]]
    back = detections_to_supervision(table, 7)
    assert back.xyxy.tolist() == CORNERS.tolist()
    assert back.confidence.tolist() == [0.5, 0.25]
    assert back.class_id.tolist() == [3, 1]
    assert back.data == {}
    if mask is None:
        assert back.mask is None
    else:
        np.testing.assert_array_equal(back.mask, mask)
    assert len(detections_to_supervision(table, 3)) == 0


def test_names_of_classes() -> None:
    names = ("cat", "dog")
    categories = lvdet.Categories(np.array([1, 3]), names, np.array(["", ""]))
    table = detections_from_supervision([(7, two())])
    back = detections_to_supervision(table, 7, categories)
    assert back.data["class_name"].tolist() == ["dog", "cat"]
    fewer = lvdet.Categories(np.array([1]), names[:1], np.array([""]))
    with pytest.raises(InputError, match="supervision: no class has the id 3"):
        detections_to_supervision(table, 7, fewer)


@pytest.mark.parametrize("lacking", ["confidence", "class_id"])
def test_what_a_detection_needs(lacking: str) -> None:
    one = two()
    setattr(one, lacking, None)
    with pytest.raises(InputError, match=f"supervision, image 4: {lacking} is None"):
        detections_from_supervision({4: one})


def test_outlines_are_no_pixels() -> None:
    columns = {"image_id": [1], "category_id": [1], "score": [0.5], "bbox": [[0, 0, 3, 3]]}
    outline = {"segmentation": [[[0.0, 0, 3, 0, 3, 3]]]}
    with pytest.raises(InputError, match="masks are polygons, expected run lengths"):
        detections_to_supervision(lvdet.read_detections(columns | outline), 1)
