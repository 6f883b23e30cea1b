"""Samples as FiftyOne 1.22.1 turns them into dicts, recorded from its own classes."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def sample(path: str, size: tuple[int, int], truth: list[Json], found: list[Json] | None) -> Json:
    """`fiftyone.Sample.to_dict()` of an image with two fields of detections."""
    return {
        "filepath": path,
        "tags": ["val"],
        "metadata": {"_cls": "ImageMetadata", "width": size[0], "height": size[1]},
        "created_at": None,
        "last_modified_at": None,
        "ground_truth": {"_cls": "Detections", "detections": truth},
        "predictions": None if found is None else {"_cls": "Detections", "detections": found},
    }


def detection(label: str, box: list[float], **fields: Any) -> Json:
    """`fiftyone.Detection.to_dict()`: a box as fractions of the image, and whatever it was given;
    masks are zlib-compressed arrays."""
    return {
        "_id": {"$oid": "6aff3c95336caf366106840d"},
        "_cls": "Detection",
        "attributes": {},
        "tags": [],
        "label": label,
        "bounding_box": box,
        **fields,
    }


#: Two rows of three pixels, all inside.
MASK = {
    "$binary": {
        "base64": "eJyb7BfqGxDJyFDGUK2eklqcXKRupaBek2SorqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RpG"
        "OgrGmjoKtQpkAy5GMAAAFFAbqw==",
        "subType": "00",
    }
}

SAMPLES = [
    sample(
        "/data/val/000001.jpg",
        (640, 480),
        [
            detection("cat", [0.1, 0.2, 0.3, 0.4], iscrowd=False),
            detection("dog", [0.5, 0.5, 0.25, 0.25]),
        ],
        [
            detection("cat", [0.1, 0.2, 0.3, 0.4], confidence=0.75, mask=MASK),
            detection("cat", [0.5, 0.5, 0.25, 0.25], confidence=0.5),
            detection("dog", [0.5, 0.5, 0.25, 0.24], confidence=0.25),
        ],
    ),
    sample("/data/val/000002.jpg", (100, 200), [detection("cat", [0.0, 0.0, 1.0, 0.5])], None),
    sample(
        "/data/val/000003.jpg",
        (200, 100),
        [detection("cat", [0.25, 0.25, 0.5, 0.5], iscrowd=True, area=1234.0)],
        [detection("dog", [0.25, 0.25, 0.5, 0.5], confidence=0.9)],
    ),
]
