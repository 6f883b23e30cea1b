"""Evidence that a results file is implausible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One problem of a results file as a whole.

    kind:     a short name, such as "repeated-images"
    count:    the number of images, boxes, objects or scores that support it
    evidence: the numbers behind it, by name
    sentence: the problem, in one sentence that names the file
    remedy:   what to do, in one sentence
    category_map: the class id that each id of the file stands for, if another mapping fits
    changes_ap: whether repairing it changes AP; a different scale of scores does not
    """

    kind: str
    count: int
    evidence: dict[str, float]
    sentence: str
    remedy: str
    category_map: dict[int, int] = field(default_factory=dict)
    changes_ap: bool = True

    def __str__(self) -> str:
        return f"{self.sentence} {self.remedy}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        found = {
            "kind": self.kind,
            "count": self.count,
            "evidence": self.evidence,
            "sentence": self.sentence,
            "remedy": self.remedy,
        }
        if self.category_map:
            found["category_map"] = {str(old): new for old, new in self.category_map.items()}
        return found
