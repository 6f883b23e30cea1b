"""The result of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.input_warnings import class_cut_text, image_cut_text, was_cut
from lvdet.evaluation.pair import headline
from lvdet.evaluation.protocols import FIXED_PER_CLASS
from lvdet.evaluation.summary import PROTOCOLS, defined, number_name
from lvdet.evaluation.ties import TieRange
from lvdet.evaluation.truncation import Cut, Cuts
from lvdet.limits.budgets import Budget, PerClass, PerImage
from lvdet.plausibility.finding import Finding
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Layout, compared, signed
from lvdet.studies.class_caps import ClassCap
from lvdet.studies.score_digits import ScoreDigits

#: A gain below this (a tenth of a point) counts as none.
NOTHING = 0.001
#: Number of short classes printed.
_SHOWN = 5


@dataclass(frozen=True)
class ShortClass:
    """A class with fewer detections in the file than AP-Fixed counts."""

    category_id: int
    name: str
    frequency: str
    detections: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "category_id": self.category_id,
            "name": self.name,
            "frequency": self.frequency,
            "detections": self.detections,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """The result of `audit`.

    cuts: whether the file was truncated, per image or per class
    short: classes with fewer than 10,000 detections in the file, fewest first
    budgets: the budget of each protocol
    old, fixed, pool: AP, APr, APc, APf of each protocol; NaN where undefined
    ties: the range of each protocol's AP over all orders of equal scores
    reranked: AP-Old after a class cap of 10,000; None for COCO files
    search: the class cap up to 10,000 that raises AP-Old most; None for COCO files
    implausible: evidence that the file is implausible
    scores: the resolution of the scores, over the detections that the protocols count
    """

    cuts: Cuts
    short: list[ShortClass]
    budgets: dict[str, Budget]
    old: dict[str, float]
    fixed: dict[str, float]
    pool: dict[str, float]
    ties: dict[str, TieRange]
    reranked: dict[str, float] | None
    search: ClassCap | None
    implausible: list[Finding]
    scores: ScoreDigits
    inputs: dict[str, Any]
    warnings: list[str]

    @property
    def cut(self) -> Cut | None:
        """Detections per image at which the file appears truncated, and how many images have
        exactly that many; None if nothing suggests truncation."""
        return self.cuts.by_image

    @property
    def class_cut(self) -> Cut | None:
        """The same for detections per class."""
        return self.cuts.by_class

    @property
    def gain(self) -> float | None:
        """How far re-ranking alone raises AP-Old; None if it was not tried."""
        return None if self.search is None else self.search.after["AP"] - self.old["AP"]

    @property
    def standing(self) -> dict[str, str]:
        """For each protocol "publishable", "not publishable", "gameable", "re-ranked",
        "incomplete", "uncertain" or "undefined"."""
        return {name: self._standing(name) for name in PROTOCOLS}

    @property
    def verdict(self) -> list[str]:
        """The standing of each protocol and why, one sentence each."""
        return [
            f"{number_name(name)} is {standing}: {self._reason(name, standing)}."
            for name, standing in self.standing.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `lvdet audit --output` writes them."""
        reranking = None
        if self.reranked is not None and self.search is not None:
            reranking = {
                "dets_per_class": FIXED_PER_CLASS,
                **defined(self.reranked),
                **defined({"gain": self.reranked["AP"] - self.old["AP"]}),
                "best": {
                    "dets_per_class": self.search.best,
                    "caps_tried": len(self.search.tried),
                    "caps_up_to": FIXED_PER_CLASS,
                    **defined(self.search.after),
                    **defined({"gain": self.search.after["AP"] - self.old["AP"]}),
                },
            }
        cut, by_class = self.cut, self.class_cut
        return {
            "cut": None if cut is None else {"limit": cut.limit, "images": cut.at_limit},
            "class_cut": None
            if by_class is None
            else {"limit": by_class.limit, "classes": by_class.at_limit},
            "short_classes": {
                "below": FIXED_PER_CLASS,
                "count": len(self.short),
                "of": self.inputs["classes"],
                "classes": [item.to_dict() for item in self.short],
            },
            **{
                name: {"budget": str(self.budgets[name]), **defined(self._metrics(name))}
                for name in PROTOCOLS
            },
            **defined({"fixed_minus_old": self.fixed["AP"] - self.old["AP"]}),
            "reranking": reranking,
            "implausible": [finding.to_dict() for finding in self.implausible],
            "scores": self.scores.to_dict(),
            "standing": self.standing,
            "verdict": self.verdict,
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was audited, on one line."""
        return headline(self.inputs)

    def layouts(self) -> list[Layout]:
        """The metrics, compared with AP-Old."""
        lines = {f"AP-Old, {self.budgets['old']}": self.old}
        if self.reranked is not None and self.search is not None:
            lines[f"re-ranked, {PerClass(FIXED_PER_CLASS)} first"] = self.reranked
            lines[f"re-ranked, {PerClass(self.search.best)} first (best)"] = self.search.after
        lines[f"AP-Fixed, {self.budgets['fixed']}"] = self.fixed
        return [
            compared("AP, mean over classes", lines),
            compared("AP-Pool", {f"AP-Pool, {self.budgets['pool']}": self.pool}),
        ]

    def findings(self) -> list[str]:
        """The findings about the file, in sentences."""
        found = [str(finding) for finding in self.implausible]
        cuts = [cut for cut in (image_cut_text(self.cuts), class_cut_text(self.cuts)) if cut]
        found += [f"The file {cut}." for cut in cuts]
        if not cuts:
            found.append("The file does not appear truncated, either per image or per class.")
        if self.short:
            first = ", ".join(f"{item.name} {item.detections:,}" for item in self.short[:_SHOWN])
            more = ", …" if len(self.short) > _SHOWN else ""
            found.append(
                f"{len(self.short):,} of {self.inputs['classes']:,} classes have fewer than "
                f"{FIXED_PER_CLASS:,} detections in the file ({first}{more}). {self._why_short()}"
            )
        difference = self.fixed["AP"] - self.old["AP"]
        if not np.isnan(difference):
            found.append(f"AP-Fixed minus AP-Old is {signed(difference)} points.")
        return found + self.scores.texts()

    def notes(self) -> list[str]:
        """The findings, then the verdict."""
        verdict = [f"- {sentence}" for sentence in self.verdict]
        return ["\n".join(self.findings()), "\n".join(verdict)]

    @property
    def _every(self) -> NDArray[np.int64]:
        return np.arange(len(self.cuts.counts))

    @property
    def _empty(self) -> bool:
        return bool(self.inputs["detection_count"] == 0)

    def _metrics(self, protocol: str) -> dict[str, float]:
        return {"old": self.old, "fixed": self.fixed, "pool": self.pool}[protocol]

    def _standing(self, protocol: str) -> str:
        budgets = [self.budgets[protocol]]
        if self._empty or np.isnan(self._metrics(protocol)["AP"]):
            return "undefined"
        if any(finding.changes_ap for finding in self.implausible):
            return "not publishable"
        if self.cuts.incomplete(budgets, self._every):
            return "incomplete"
        if self.cuts.reranked(budgets, self._every):
            return "re-ranked"
        if self.ties[protocol].notable:
            return "uncertain"
        may_rise = self.cut is not None or (self.gain is not None and self.gain >= NOTHING)
        return "gameable" if isinstance(budgets[0], PerImage) and may_rise else "publishable"

    def _reason(self, protocol: str, standing: str) -> str:
        if standing == "undefined":
            return (
                "the file has no detections, so an AP of 0 says nothing about the detector"
                if self._empty
                else "the annotations have no objects to detect"
            )
        if standing == "not publishable":
            wrong = [finding for finding in self.implausible if finding.changes_ap]
            kinds = ", ".join(finding.kind.replace("-", " ") for finding in wrong)
            return f"the results file looks wrong ({kinds})"
        if standing == "incomplete":
            return self._what_is_missing(self.budgets[protocol])
        if standing == "uncertain":
            low, high = 100 * self.ties[protocol].low, 100 * self.ties[protocol].high
            return (
                f"it lies between {low:.2f} and {high:.2f}, depending on the order of equal "
                "scores; write scores at full precision"
            )
        if protocol == "old":
            return self._why_old(standing)
        return f"the file appears to have every detection that {self.budgets[protocol]} keeps"

    def _why_short(self) -> str:
        fixed = [self.budgets["fixed"]]
        if self.cuts.missed_by_image(fixed, self._every):
            return "Some would have more in untruncated results, but the file does not show which."
        if self.class_cut is not None and self.cuts.missed_by_class(fixed, self._every):
            return f"Those with {self.class_cut.limit:,} would have more in untruncated results."
        return "This is fine: the detector found no more of them, or kept no lower scores."

    def _what_is_missing(self, budget: Budget) -> str:
        causes = []
        if self.cut is not None and self.cuts.missed_by_image([budget], self._every):
            causes.append(f"{was_cut(self.cut)} at {self.cut.limit:,} detections per image")
        if self.class_cut is not None and self.cuts.missed_by_class([budget], self._every):
            causes.append(
                f"{was_cut(self.class_cut)} at {self.class_cut.limit:,} detections per class"
            )
        return (
            f"the file {' and '.join(causes)}, so detections that {budget} would keep are "
            "missing and AP is usually too low"
        )

    def _why_old(self, standing: str) -> str:
        search, gain = self.search, self.gain
        if search is None or gain is None:
            return (
                f"classes do not compete under {self.budgets['old']}, so re-ranking cannot raise it"
            )
        tried = f"{len(search.tried):,} class caps tried, up to {FIXED_PER_CLASS:,}"
        way = f"best class cap {search.best:,}; {tried}"
        rise = f"{100 * gain:.2f} points ({way})"
        if standing == "re-ranked" and self.class_cut is not None:
            again = f", and re-ranking raises it by another {rise}" if gain >= NOTHING else ""
            return (
                f"the file {was_cut(self.class_cut)} at {self.class_cut.limit:,} detections per "
                f"class, so this is the AP-Old of results re-ranked with that class cap{again}"
            )
        if gain >= NOTHING:
            return (
                f"re-ranking alone raises it by {rise}, so a smaller lead over another detector "
                "proves nothing"
            )
        if self.cut is not None:
            left = "nothing" if self.cut.limit <= self.budgets["old"].limit else "less"
            return (
                f"it is what lvis computes, but the file {was_cut(self.cut)} at "
                f"{self.cut.limit:,} detections per image, which leaves re-ranking {left} to add; "
                "with untruncated results it may rise"
            )
        return f"re-ranking does not raise it here ({tried}), but AP-Fixed is the safer number"
