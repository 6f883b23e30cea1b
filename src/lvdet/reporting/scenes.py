"""Where the marks and numbers of a picture go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lvdet.studies.account import Shown

#: Height of a number as a share of the picture's longer side, and width of a digit as a share of
#: that height.
TEXT, DIGIT = 1 / 36, 0.64


@dataclass(frozen=True)
class Mark:
    """A detection in a picture.

    rank: its number in the list, from 1
    outline: the path of its mask, "" where its box is drawn
    x, y: the top left corner of its number
    crowded: whether the number has no room, and is shown only while the detection is highlighted
    """

    rank: int
    shown: Shown
    outline: str
    x: float
    y: float
    crowded: bool

    @property
    def area(self) -> float:
        """Of the box, in pixels."""
        return self.shown.box[2] * self.shown.box[3]


def text_size(width: int, height: int) -> float:
    """The height of numbers in a picture, in its pixels."""
    return max(width, height) * TEXT


def number_box(rank: int, size: float) -> tuple[float, float]:
    """Width and height of a number."""
    return len(str(rank)) * DIGIT * size, size


def marks(
    items: Sequence[Shown], outlines: Mapping[int, str], width: int, height: int
) -> list[Mark]:
    """The marks of a list of detections, best first. A number goes to the first place at its box
    that no better detection's number has taken (the top of a mask, the corners of the box); it is
    crowded where all are taken.

    outlines: paths of masks, by row of the detection
    """
    size = text_size(width, height)
    taken: list[tuple[float, float, float, float]] = []
    found = []
    for rank, item in enumerate(items, start=1):
        wide, high = number_box(rank, size)
        outline = outlines.get(item.row, "")
        places = [(item.box[0] + (item.box[2] - wide) / 2, item.box[1])] if outline else []
        places += _corners(item.box, wide, high)
        inside = [(min(max(x, 0), width - wide), min(max(y, 0), height - high)) for x, y in places]
        free = [one for one in inside if not any(_overlap((*one, wide, high), t) for t in taken)]
        x, y = (free or inside)[0]
        if free:
            taken.append((x, y, wide, high))
        found.append(Mark(rank, item, outline, x, y, not free))
    return found


def _corners(box: Sequence[float], wide: float, high: float) -> list[tuple[float, float]]:
    """Where a number may go, the best place first: inside the corners of a box, then outside."""
    left, top, right, bottom = box[0], box[1], box[0] + box[2], box[1] + box[3]
    return [
        (left, top),
        (right - wide, top),
        (left, bottom - high),
        (right - wide, bottom - high),
        (left, top - high),
        (left - wide, top),
        (right, top),
        (left, bottom),
    ]


def _overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether two boxes share more than an edge."""
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]
