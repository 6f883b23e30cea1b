"""LVISEval: the LVIS protocol on lvdet's engine, under lvis's names."""

from __future__ import annotations

import datetime
import logging
import os
from collections import OrderedDict, defaultdict
from functools import partial
from typing import Any

import numpy as np

from lvdet.errors import LvdetError
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.integrations.cell_records import LVIS_FIELDS, cell_records
from lvdet.integrations.dataset_tables import evaluate_dataset
from lvdet.integrations.lazy import LazyMapping, Pairs
from lvdet.integrations.lvis.lvis import LVIS
from lvdet.integrations.lvis.results import LVISResults
from lvdet.integrations.matched_cells import Cells, MatchedCells, Question
from lvdet.integrations.overridden import require_own
from lvdet.integrations.pycocotools.cell_overlaps import cell_overlaps

__all__ = ["LVISEval", "Params"]

_LINE = " {:<18} {} @[ IoU={:<9} | area={:>6s} | maxDets={:>3d} catIds={:>3s}] = {:0.3f}"


class Params:
    """Evaluation parameters; change the attributes before `evaluate`."""

    def __init__(self, iou_type: str) -> None:
        small, medium, most = 32**2, 96**2, 1e5**2
        self.img_ids: list[Any] = []
        self.cat_ids: list[Any] = []
        self.iou_thrs = np.linspace(0.5, 0.95, 10)
        self.rec_thrs = np.linspace(0.0, 1.0, 101)
        self.max_dets = 300
        self.area_rng: list[list[float]] = [[0, most], [0, small], [small, medium], [medium, most]]
        self.area_rng_lbl = ["all", "small", "medium", "large"]
        self.use_cats = 1
        self.img_count_lbl = ["r", "c", "f"]
        self.iou_type = iou_type


class LVISEval:
    """Evaluates results: `run()`, `print_results()`, `get_results()`."""

    def __init__(
        self,
        lvis_gt: LVIS | str | os.PathLike[str],
        lvis_dt: LVISResults | str | os.PathLike[str] | list[dict[str, Any]],
        iou_type: str = "segm",
    ) -> None:
        self.logger = logging.getLogger(__name__)
        if iou_type not in ("bbox", "segm"):
            raise ValueError(f"iou_type: {iou_type} is not supported.")
        if isinstance(lvis_gt, str | os.PathLike):
            lvis_gt = LVIS(lvis_gt)
        if not isinstance(lvis_gt, LVIS):
            raise TypeError(f"Unsupported type {type(lvis_gt).__name__} of lvis_gt.")
        if isinstance(lvis_dt, str | os.PathLike | list):
            lvis_dt = LVISResults(lvis_gt, lvis_dt)
        if not isinstance(lvis_dt, LVISResults):
            raise TypeError(f"Unsupported type {type(lvis_dt).__name__} of lvis_dt.")
        self.lvis_gt, self.lvis_dt = lvis_gt, lvis_dt
        self.eval_imgs: Any = defaultdict(list)
        self.eval: dict[str, Any] = {}
        self._gts: defaultdict[Any, list[Any]] = defaultdict(list)
        self._dts: defaultdict[Any, list[Any]] = defaultdict(list)
        self.params = Params(iou_type=iou_type)
        self.results: OrderedDict[str, Any] = OrderedDict()
        self.ious: Any = {}
        self.params.img_ids = sorted(lvis_gt.get_img_ids())
        self.params.cat_ids = sorted(lvis_gt.get_cat_ids())
        self._matched: MatchedCells | None = None

    def evaluate(self) -> None:
        """Matches detections with objects. `eval_imgs` and `ious` are computed on access."""
        self.logger.info("Running per image evaluation.")
        require_own(self, LVISEval, ("compute_iou", "evaluate_img"))
        p = self.params
        if not p.use_cats:
            raise LvdetError(
                "use_cats is 0, with which lvis finds nothing: use useCats of COCOeval"
            )
        p.img_ids = list(np.unique(p.img_ids))
        self._prepare()
        self._matched = MatchedCells(
            Question(
                self._gts,
                self._dts,
                list(p.img_ids),
                list(p.cat_ids),
                self.lvis_gt.imgs,
                use_classes=True,
                iou=p.iou_type,
                thresholds=list(p.iou_thrs),
                area_ranges=list(p.area_rng),
                not_exhaustive=self.img_nel,
            )
        )
        self.ious = LazyMapping(
            Pairs(p.img_ids, p.cat_ids), partial(self._overlaps, self._gts, self._dts)
        )
        self.eval_imgs = cell_records(self._matched, LVIS_FIELDS)

    def accumulate(self) -> None:
        """Computes `eval`: precision and recall of every class and area range."""
        self.logger.info("Accumulating evaluation results.")
        if self._matched is None:
            raise LvdetError("there is nothing to accumulate: run evaluate() first")
        p = self.params
        counts = [len(p.iou_thrs), len(p.rec_thrs), len(p.cat_ids), len(p.area_rng)]
        tables = [self._matched.tables(area, p.rec_thrs) for area in range(len(p.area_rng))]
        self.eval = {
            "params": p,
            "counts": counts,
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            "precision": np.stack([one.precision for one in tables], axis=-1),
            "recall": np.stack([one.recall for one in tables], axis=-1),
            "dt_pointers": LazyMapping(range(len(p.cat_ids)), self._pointers),
        }

    def summarize(self) -> None:
        """Computes the thirteen numbers of `results`."""
        if not self.eval:
            raise RuntimeError("Please run accumulate() first.")
        areas = ("small", "medium", "large")
        self.results["AP"] = self._summarize("ap")
        for threshold in (0.5, 0.75):
            self.results[f"AP{threshold * 100:.0f}"] = self._summarize("ap", iou_thr=threshold)
        for area in areas:
            self.results[f"AP{area[0]}"] = self._summarize("ap", area_rng=area)
        for place, group in enumerate("rcf"):
            self.results[f"AP{group}"] = self._summarize("ap", freq_group_idx=place)
        limit = self.params.max_dets
        self.results[f"AR@{limit}"] = self._summarize("ar")
        for area in areas:
            self.results[f"AR{area[0]}@{limit}"] = self._summarize("ar", area_rng=area)

    def run(self) -> None:
        """Evaluates, accumulates and summarizes."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    def print_results(self) -> None:
        """Prints the numbers of `results`."""
        p = self.params
        spread = f"{p.iou_thrs[0]:0.2f}:{p.iou_thrs[-1]:0.2f}"
        for key, value in self.results.items():
            of = key[2:3]
            title = "Average Precision" if "AP" in key else "Average Recall"
            kind = "(AP)" if "AP" in key else "(AR)"
            iou = f"{float(key[2:]) / 100:0.2f}" if of.isdigit() else spread
            area = of if of and of in "sml" else "all"
            group = of if of and of in "rcf" else "all"
            print(_LINE.format(title, kind, iou, area, p.max_dets, group, value))

    def get_results(self) -> OrderedDict[str, Any]:
        """The numbers by name."""
        if not self.results:
            self.logger.warning("results is empty. Call run().")
        return self.results

    def compute_iou(self, img_id: Any, cat_id: Any) -> Any:
        """[D, G] overlaps of a class's detections in an image, by descending score, with its
        objects there."""
        return self._overlaps(self._gts, self._dts, (img_id, cat_id))

    def lvdet_evaluation(self, **options: Any) -> Evaluation:
        """lvdet's own evaluation of the same images: LVIS's AP beside AP-Fixed and AP-Pool, which
        rank all results, including those that `max_dets` removed. Takes the options of
        `lvdet.evaluate`."""
        limit = self.lvis_dt.max_dets
        own = {"dets_per_image": limit} if limit >= 0 else {}
        if {"like", "budgets"} & set(options):
            own = {}
        return evaluate_dataset(
            self.lvis_gt.dataset,
            self.lvis_dt.all_results,
            image_ids=self.params.img_ids,
            class_ids=self.params.cat_ids,
            federated=True,
            **{
                "iou": self.params.iou_type,
                "thresholds": list(self.params.iou_thrs),
                **own,
                **options,
            },
        )

    def _prepare(self) -> None:
        """Collects annotations and detections by image and class in `_gts` and `_dts`, without the
        detections of classes that were not verified in their image."""
        p = self.params
        classes = p.cat_ids or None
        gts, dts = (
            source.load_anns(source.get_ann_ids(img_ids=p.img_ids, cat_ids=classes))
            for source in (self.lvis_gt, self.lvis_dt)
        )
        self._gts, self._dts = defaultdict(list), defaultdict(list)
        for one in gts:
            one.setdefault("ignore", 0)
            self._gts[one["image_id"], one["category_id"]].append(one)
        images = self.lvis_gt.load_imgs(p.img_ids)
        negative = {one["id"]: set(one["neg_category_ids"]) for one in images}
        self.img_nel = {one["id"]: one["not_exhaustive_category_ids"] for one in images}
        for one in dts:
            key = one["image_id"], one["category_id"]
            if key[1] in negative[key[0]] or key in self._gts:
                self._dts[key].append(one)
        self.freq_groups = self._prepare_freq_group()

    def _prepare_freq_group(self) -> list[list[int]]:
        """Indices of the rare, common and frequent classes."""
        labels = self.params.img_count_lbl
        groups: list[list[int]] = [[] for _ in labels]
        for place, one in enumerate(self.lvis_gt.load_cats(self.params.cat_ids)):
            groups[labels.index(one["frequency"])].append(place)
        return groups

    def _overlaps(self, gts: Cells, dts: Cells, key: tuple[Any, Any]) -> Any:
        encode = self.lvis_gt.ann_to_rle, self.lvis_dt.ann_to_rle
        return cell_overlaps(gts.get(key, []), dts.get(key, []), self.params.iou_type, encode)

    def _pointers(self, place: int) -> LazyMapping:
        """A class's item of `dt_pointers`."""
        return LazyMapping(range(len(self.params.area_rng)), partial(self._pointer, place))

    def _pointer(self, place: int, area: int) -> dict[str, Any]:
        """The detections of a class by descending score, and which are correct and incorrect."""
        assert self._matched is not None
        ranking = self._matched.ranking(place, area)
        if ranking is None:
            return {}
        detections, matched, ignored = ranking
        return {
            "dt_ids": np.array([one["id"] for one in detections]),
            "tps": matched & ~ignored,
            "fps": ~matched & ~ignored,
        }

    def _summarize(
        self,
        summary_type: str,
        iou_thr: float | None = None,
        area_rng: str = "all",
        freq_group_idx: int | None = None,
    ) -> Any:
        p = self.params
        values = self.eval["precision" if summary_type == "ap" else "recall"]
        if iou_thr is not None:
            values = values[np.flatnonzero(np.asarray(p.iou_thrs) == iou_thr)]
        if summary_type == "ap" and freq_group_idx is not None:
            values = values[:, :, self.freq_groups[freq_group_idx]]
        values = values[..., [at for at, label in enumerate(p.area_rng_lbl) if label == area_rng]]
        values = values[values > -1]
        return np.mean(values) if len(values) else -1
