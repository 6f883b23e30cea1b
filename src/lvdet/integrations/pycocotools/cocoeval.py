"""COCOeval: the COCO protocol on lvdet's engine, under pycocotools's names."""

from __future__ import annotations

import copy
import datetime
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from lvdet.errors import LvdetError
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.integrations.cell_records import COCO_FIELDS, cell_records
from lvdet.integrations.curve_tables import CurveTables, RankedOutcomes, tables_of_classes
from lvdet.integrations.dataset_tables import evaluate_dataset
from lvdet.integrations.lazy import LazyList, LazyMapping, Pairs
from lvdet.integrations.matched_cells import Cells, MatchedCells, Question
from lvdet.integrations.overridden import require_own
from lvdet.integrations.pycocotools.cell_overlaps import cell_overlaps
from lvdet.integrations.pycocotools.coco import COCO, KEYPOINTS

__all__ = ["COCOeval", "Params"]

_LINE = " {:<18} {} @[ IoU={:<9} | area={:>6s} | maxDets={:>3d} ] = {:0.3f}"
#: What `summarize` prints: AP or AR, an IoU threshold or all, a range of area, and an index into
#: maxDets; None stands for 100, which pycocotools' first line always uses.
_SUMMARY: tuple[tuple[str, float | None, str, int | None], ...] = (
    ("AP", None, "all", None),
    ("AP", 0.5, "all", 2),
    ("AP", 0.75, "all", 2),
    ("AP", None, "small", 2),
    ("AP", None, "medium", 2),
    ("AP", None, "large", 2),
    ("AR", None, "all", 0),
    ("AR", None, "all", 1),
    ("AR", None, "all", 2),
    ("AR", None, "small", 2),
    ("AR", None, "medium", 2),
    ("AR", None, "large", 2),
)


class Params:
    """Evaluation parameters; change the attributes before `evaluate`."""

    def __init__(self, iouType: str = "segm") -> None:
        if iouType == "keypoints":
            raise LvdetError(KEYPOINTS)
        if iouType not in ("bbox", "segm"):
            raise LvdetError(f"iouType is {iouType!r}, expected 'bbox' or 'segm'")
        self.setDetParams()
        self.iouType = iouType
        self.useSegm: int | None = None

    def setDetParams(self) -> None:
        """The parameters of COCO's challenge."""
        self.imgIds: list[Any] = []
        self.catIds: list[Any] = []
        self.iouThrs = np.linspace(0.5, 0.95, 10)
        self.recThrs = np.linspace(0.0, 1.0, 101)
        self.maxDets = [1, 10, 100]
        small, medium, most = 32**2, 96**2, 1e5**2
        self.areaRng: list[list[float]] = [[0, most], [0, small], [small, medium], [medium, most]]
        self.areaRngLbl = ["all", "small", "medium", "large"]
        self.useCats = 1


class COCOeval:
    """Evaluates results: `evaluate()`, `accumulate()`, `summarize()`."""

    def __init__(
        self, cocoGt: COCO | None = None, cocoDt: COCO | None = None, iouType: str = "segm"
    ) -> None:
        if not iouType:
            print("iouType not specified. use default iouType segm")
        self.cocoGt, self.cocoDt = cocoGt, cocoDt
        self.params = Params(iouType=iouType)
        self._paramsEval: Any = {}
        self.evalImgs: Any = defaultdict(list)
        self.eval: dict[str, Any] = {}
        self.stats: Any = []
        self.ious: Any = {}
        self._gts: defaultdict[Any, list[Any]] = defaultdict(list)
        self._dts: defaultdict[Any, list[Any]] = defaultdict(list)
        self._matched: MatchedCells | None = None
        self._records: LazyList | None = None
        if cocoGt is not None:
            self.params.imgIds = sorted(cocoGt.getImgIds())
            self.params.catIds = sorted(cocoGt.getCatIds())

    def evaluate(self) -> None:
        """Matches detections with objects. `evalImgs` and `ious` are computed on access."""
        start = time.time()
        print("Running per image evaluation...")
        require_own(self, COCOeval, ("computeIoU", "evaluateImg"))
        p = self.params
        if p.useSegm is not None:
            p.iouType = "segm" if p.useSegm == 1 else "bbox"
            print(f"useSegm (deprecated) is not None. Running {p.iouType} evaluation")
        print(f"Evaluate annotation type *{p.iouType}*")
        if p.iouType not in ("bbox", "segm"):
            raise LvdetError(KEYPOINTS if p.iouType == "keypoints" else "unknown iouType")
        p.imgIds = list(np.unique(p.imgIds))
        if p.useCats:
            p.catIds = list(np.unique(p.catIds))
        p.maxDets = sorted(p.maxDets)
        self._prepare()
        self._matched = None
        self._paramsEval = copy.deepcopy(p)
        pairs = Pairs(p.imgIds, p.catIds if p.useCats else [-1])
        parts = self._gts, self._dts, self._paramsEval
        self.ious = LazyMapping(pairs, partial(self._overlaps, *parts))
        self._records = cell_records(self._match(), COCO_FIELDS, p.maxDets[-1])
        self.evalImgs = self._records
        print(f"DONE (t={time.time() - start:0.2f}s).")

    def accumulate(self, p: Params | None = None) -> None:
        """Computes `eval`: precision, recall and scores of every class, area range and limit."""
        print("Accumulating evaluation results...")
        start = time.time()
        if not self.evalImgs:
            print("Please run evaluate() first")
        p = self.params if p is None else p
        p.catIds = p.catIds if p.useCats == 1 else [-1]
        evaluated = self._paramsEval
        if not evaluated:
            raise LvdetError("there is nothing to accumulate: run evaluate() first")
        if len(p.iouThrs) != len(evaluated.iouThrs):
            raise LvdetError("iouThrs have changed since evaluate(): run it again")
        of_classes = evaluated.catIds if evaluated.useCats else [-1]
        classes = _places("catIds", p.catIds, of_classes)
        areas = _places("areaRng", [tuple(one) for one in p.areaRng], map(tuple, evaluated.areaRng))
        images = _places("imgIds", p.imgIds, evaluated.imgIds)
        limits = [one for one in p.maxDets if one in evaluated.maxDets]
        counts = [len(p.iouThrs), len(p.recThrs), len(p.catIds), len(p.areaRng), len(p.maxDets)]
        precision, scores = -np.ones(counts), -np.ones(counts)
        recall = -np.ones([counts[0], *counts[2:]])
        own = self.evalImgs is self._records and len(images) == len(evaluated.imgIds)
        for (a, area), (m, limit) in product(enumerate(areas), enumerate(limits)):
            if own and self._matched is not None and len(of_classes):
                tables = self._matched.tables(area, p.recThrs, limit)
            else:
                tables = self._tables(area, p.recThrs, limit, len(of_classes), images)
            precision[:, :, : len(classes), a, m] = tables.precision[:, :, classes]
            scores[:, :, : len(classes), a, m] = tables.score[:, :, classes]
            recall[:, : len(classes), a, m] = tables.recall[:, classes]
        self.eval = {
            "params": p,
            "counts": counts,
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            "precision": precision,
            "recall": recall,
            "scores": scores,
        }
        print(f"DONE (t={time.time() - start:0.2f}s).")

    def summarize(self) -> None:
        """Prints COCO's twelve numbers and stores them as `stats`."""
        if not self.eval:
            raise LvdetError("there is nothing to summarize: run accumulate() first")
        limits = self.params.maxDets
        self.stats = np.array(
            [
                self._summarized(kind, iou, area, 100 if place is None else limits[place])
                for kind, iou, area, place in _SUMMARY
            ]
        )

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        """[D, G] overlaps of a class's detections in an image, by descending score, with its
        objects there."""
        return self._overlaps(self._gts, self._dts, self.params, (imgId, catId))

    def evaluateImg(self, imgId: Any, catId: Any, aRng: Any, maxDet: int) -> Any:
        """One item of `evalImgs`, for scripts with their own `evaluate`."""
        matched, p = self._match(), self.params
        place = matched.class_places[catId] if p.useCats else 0
        row = place * len(p.areaRng) + p.areaRng.index(aRng)
        at = row * len(matched.image_places) + matched.image_places[imgId]
        return cell_records(matched, COCO_FIELDS, maxDet)[at]

    def lvdet_evaluation(self, **options: Any) -> Evaluation:
        """lvdet's own evaluation of the same images and classes: COCO's AP beside AP-Fixed and
        AP-Pool. Takes the options of `lvdet.evaluate`."""
        p, (truth, found) = self.params, self._sides()
        return evaluate_dataset(
            truth.dataset,
            found.dataset["annotations"],
            image_ids=p.imgIds,
            class_ids=p.catIds if p.useCats else truth.cats,
            federated=False,
            **{"iou": p.iouType, "thresholds": list(p.iouThrs), **options},
        )

    def _prepare(self) -> None:
        """Collects the annotations by image and class, in `_gts` and `_dts`."""
        p, (truth, results) = self.params, self._sides()
        classes = p.catIds if p.useCats else []
        self._gts, self._dts = defaultdict(list), defaultdict(list)
        for source, cells in ((truth, self._gts), (results, self._dts)):
            for one in source.loadAnns(source.getAnnIds(imgIds=p.imgIds, catIds=classes)):
                cells[one["image_id"], one["category_id"]].append(one)
        for found in self._gts.values():
            for one in found:
                one["ignore"] = "iscrowd" in one and one["iscrowd"]
        self.evalImgs, self.eval = defaultdict(list), {}

    def _match(self) -> MatchedCells:
        """The match of the annotations and detections that `_prepare` last collected."""
        p, known = self.params, self._matched
        if known is None or known.question.detections is not self._dts:
            self._matched = known = MatchedCells(
                Question(
                    self._gts,
                    self._dts,
                    list(p.imgIds),
                    list(p.catIds),
                    self._sides()[0].imgs,
                    use_classes=bool(p.useCats),
                    iou=p.iouType,
                    thresholds=list(p.iouThrs),
                    area_ranges=list(p.areaRng),
                    crowds=True,
                )
            )
        return known

    def _overlaps(self, gts: Cells, dts: Cells, p: Params, key: tuple[Any, Any]) -> Any:
        truth, found = self._sides()
        classes = [key[1]] if p.useCats else p.catIds
        objects, detections = (
            [one for of in classes for one in cells.get((key[0], of), ())] for cells in (gts, dts)
        )
        encode = truth.annToRLE, found.annToRLE
        limit = p.maxDets[-1]
        return cell_overlaps(objects, detections, p.iouType, encode, crowds=True, limit=limit)

    def _sides(self) -> tuple[COCO, COCO]:
        if self.cocoGt is None or self.cocoDt is None:
            raise LvdetError("COCOeval was made without cocoGt or cocoDt")
        return self.cocoGt, self.cocoDt

    def _tables(
        self,
        area: int,
        recalls: Any,
        limit: int,
        classes: int,
        images: Sequence[int],
    ) -> CurveTables:
        """Tables of what `evalImgs` holds, which other code may have assembled."""
        p = self._paramsEval
        found = []
        for place in range(classes):
            first = (place * len(p.areaRng) + area) * len(p.imgIds)
            cells = [self.evalImgs[first + image] for image in images]
            cells = [one for one in cells if one is not None]
            empty = np.zeros((len(p.iouThrs), 0), dtype=bool)
            scores = np.concatenate([[], *(one["dtScores"][:limit] for one in cells)])
            order = np.argsort(-scores, kind="mergesort")
            matched, ignored = (
                np.concatenate([empty, *(one[key][:, :limit] != 0 for one in cells)], axis=1)
                for key in ("dtMatches", "dtIgnore")
            )
            truth = sum(int(np.count_nonzero(np.asarray(one["gtIgnore"]) == 0)) for one in cells)
            found.append(RankedOutcomes(scores[order], matched[:, order], ignored[:, order], truth))
        return tables_of_classes(found, len(p.iouThrs), recalls)

    def _summarized(self, kind: str, iou: float | None, area: str, limit: int) -> Any:
        p = self.params
        values = self.eval["precision" if kind == "AP" else "recall"]
        if iou is not None:
            values = values[np.flatnonzero(np.asarray(p.iouThrs) == iou)]
        at = [place for place, label in enumerate(p.areaRngLbl) if label == area]
        within = [place for place, one in enumerate(p.maxDets) if one == limit]
        values = values[..., at, :][..., within]
        values = values[values > -1]
        mean = np.mean(values) if len(values) else -1
        title = "Average Precision" if kind == "AP" else "Average Recall"
        spread = f"{p.iouThrs[0]:0.2f}:{p.iouThrs[-1]:0.2f}" if iou is None else f"{iou:0.2f}"
        print(_LINE.format(title, f"({kind})", spread, area, limit, mean))
        return mean


def _places(name: str, requested: Sequence[Any], evaluated: Any) -> list[int]:
    """Indices of the requested items among those evaluated, which must start with them."""
    known = list(evaluated)
    members = set(known)
    places = [place for place, one in enumerate(requested) if one in members]
    if any(place >= len(known) or known[place] != requested[place] for place in places):
        raise LvdetError(
            f"{name} differ from those that evaluate() used, or are in another order: run it again"
        )
    return places
