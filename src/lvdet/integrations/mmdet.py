"""AP-Fixed as a metric of MMEngine, for MMDetection, MMYOLO and projects built on them.

In a config, change the type and nothing else:

    val_evaluator = dict(type="lvdet.integrations.mmdet.FixedAPMetric", ann_file=…)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any, ClassVar

from lvdet.errors import InputError
from lvdet.extras import needed
from lvdet.files.annotation_files import read_ground_truth
from lvdet.integrations.loop_results import (
    LoopResults,
    Share,
    evaluate_results,
    label_ids,
    repeated,
)

with needed(["mmengine"], "lvdet.integrations.mmdet", "pip install mmengine"):
    from mmengine.dist import all_gather_object, broadcast_object_list, is_main_process
    from mmengine.evaluator import BaseMetric
    from mmengine.fileio import get_local_path
    from mmengine.logging import MMLogger
    from mmengine.registry import METRICS


@METRICS.register_module()
class FixedAPMetric(BaseMetric):  # type: ignore[misc]
    """`LVISFixedAPMetric` in bounded memory: the same constructor, the same AP.

    It also writes the results file `{outfile_prefix}.{metric}.json`, from which `lvdet evaluate`
    computes the same numbers, and reports AP-Old and AP-Pool as `old_AP` and `pool_AP`.

    ann_file:      annotations in LVIS's format
    topk:          detections per class that count
    format_only:   only write the results file
    outfile_prefix: path and beginning of the name of the results file; None writes none
    metric:        "bbox", or "segm" for detectors with masks
    """

    default_prefix: ClassVar[str | None] = "lvis_fixed_ap"

    def __init__(
        self,
        ann_file: str,
        topk: int = 10000,
        format_only: bool = False,
        outfile_prefix: str | None = None,
        collect_device: str = "cpu",
        prefix: str | None = None,
        backend_args: dict[str, Any] | None = None,
        metric: str = "bbox",
    ) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix)
        if metric not in ("bbox", "segm"):
            raise InputError(f"metric is {metric!r}, expected 'bbox' or 'segm'")
        if format_only and outfile_prefix is None:
            raise InputError("format_only needs outfile_prefix, the path of the results file")
        self.topk, self.metric, self.format_only = topk, metric, format_only
        self._outfile: Path | None = None
        if outfile_prefix is not None:
            self._outfile = Path(f"{outfile_prefix}.{metric}.json")
        with get_local_path(ann_file, backend_args=backend_args) as path:
            self._gt = read_ground_truth(path, masks=metric == "segm")
        self._found: LoopResults | None = None

    def process(self, data_batch: Any, data_samples: Sequence[Mapping[str, Any]]) -> None:
        """Adds the detections of a batch."""
        found = self._results()
        for sample in data_samples:
            pred = sample["pred_instances"]
            scores, masks = pred["scores"], None
            if self.metric == "segm":
                scores, masks = pred.get("mask_scores", scores), pred["masks"]
            found.add(sample["img_id"], pred["bboxes"], scores, pred["labels"], masks)

    def compute_metrics(self, results: Sequence[Share]) -> dict[str, float]:
        """The metrics, from the files of all processes."""
        logger = MMLogger.get_current_instance()
        if again := repeated(results):
            logger.info(f"{again} images were seen again; each counts once")
        path = self._results().join(results, self._outfile)
        if self._outfile is not None:
            logger.info(f"results are saved in {path}")
        if self.format_only:
            return {}
        result = evaluate_results(self._gt, path, self.metric, dets_per_class=self.topk)
        logger.info(f"\n{result}")
        metrics = {
            name: value for name, value in result["fixed"].items() if name.startswith("AP")
        } | {f"{name}_AP": result[name].AP for name in ("old", "pool")}
        # As in lvis, -1 where there is nothing to measure.
        return {name: -1.0 if isnan(value) else value for name, value in metrics.items()}

    def evaluate(self, size: int) -> dict[str, float]:
        """The metrics of all processes' detections, in each of them."""
        shares = all_gather_object(self._results().share())
        outcome: list[Any] = [None]
        if is_main_process():
            try:
                metrics = self.compute_metrics(shares)
                outcome = [{f"{self.prefix}/{name}": value for name, value in metrics.items()}]
            except Exception as error:  # the other processes wait for an answer
                outcome = [error]
        broadcast_object_list(outcome)
        self._results().remove()
        self._found = None
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        found: dict[str, float] = outcome[0]
        return found

    def _results(self) -> LoopResults:
        if self._found is None:
            names = (self.dataset_meta or {}).get("classes")
            self._found = LoopResults(
                self._gt,
                label_ids(self._gt, names),
                dets_per_class=self.topk,
                folder=None if self._outfile is None else self._outfile.parent,
            )
        return self._found
