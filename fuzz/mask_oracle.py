"""pycocotools in a process of its own: reads a line of JSON for each case, answers with one.

Its memory is at risk in two places: `frUncompressedRLE` reads beyond a buffer where runs do not
add up, and `merge` writes beyond one where masks have many empty runs. Overlaps of masks with
empty runs are wrong (a mask's with itself may be 0), and so is the box of a mask that has no
others. So only masks that lvdet accepts come here, and where that matters the same pixels are
encoded again. A crash is this process's.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import pycocotools.mask as coco_mask


def answer(case: dict[str, Any]) -> dict[str, Any]:
    if "polygons" in case:
        encoded = coco_mask.frPyObjects(case["polygons"], *case["size"])
        return {"counts": coco_mask.merge(encoded)["counts"].decode()}
    rles = [{"size": case["size"], "counts": counts.encode()} for counts in case["counts"]]
    plain = coco_mask.encode(coco_mask.decode(rles))
    return {
        "area": coco_mask.area(rles).tolist(),
        "box": coco_mask.toBbox(plain).tolist(),
        "united": coco_mask.merge(plain)["counts"].decode(),
        "common": coco_mask.merge(plain, 1)["counts"].decode(),
        "overlaps": coco_mask.iou(plain, plain, [0] * len(plain)).tolist(),
        "of_a_crowd": coco_mask.iou(plain, plain, [1] * len(plain)).tolist(),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
