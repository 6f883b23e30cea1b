"""LVISResults: a results file as dicts, with lvis's names."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from lvdet.errors import InputError
from lvdet.integrations.lvis.lvis import LVIS, Record
from lvdet.integrations.pycocotools.coco import complete_results

__all__ = ["LVISResults"]


class LVISResults(LVIS):
    """The best `max_dets` results of each image; all results if it is negative."""

    def __init__(
        self,
        lvis_gt: LVIS | str | os.PathLike[str],
        results: str | os.PathLike[str] | list[Record],
        max_dets: int = 300,
    ) -> None:
        self.logger = logging.getLogger(__name__)
        self.logger.info("Loading and preparing results.")
        if isinstance(lvis_gt, LVIS):
            dataset = lvis_gt.dataset
        elif isinstance(lvis_gt, str | os.PathLike):
            dataset = self._load_json(lvis_gt)
        else:
            raise TypeError(f"Unsupported type {type(lvis_gt).__name__} of lvis_gt.")
        if isinstance(results, str | os.PathLike):
            results = self._load_json(results)
        if not isinstance(results, list):
            raise InputError(f"results are a {type(results).__name__}, expected a list of dicts")
        if not results:  # as lvis fails on them, and as callers catch it
            raise IndexError("the results are empty")
        #: The original results, whose rows AP-Fixed ranks over the whole set.
        self.all_results: list[Record] = results
        self.max_dets = max_dets
        if max_dets >= 0:
            results = self.limit_dets_per_image(results, max_dets)
        if results:
            complete_results(results)
        for place, one in enumerate(results):
            one["id"] = place + 1
        self.dataset = {**dataset, "annotations": results}
        self._create_index()
        unknown = {one["image_id"] for one in results} - set(self.imgs)
        if unknown:
            raise InputError(
                f"Results do not correspond to current LVIS set: it has no image {min(unknown)}"
            )

    def limit_dets_per_image(self, anns: Sequence[Record], max_dets: int) -> list[Record]:
        """The highest-scoring results of each image; ties go to the earlier one."""
        of_image: defaultdict[Any, list[Record]] = defaultdict(list)
        for one in anns:
            of_image[one["image_id"]].append(one)
        kept = []
        for found in of_image.values():
            if len(found) > max_dets:
                found = sorted(found, key=lambda one: one["score"], reverse=True)[:max_dets]
            kept += found
        return kept

    def get_top_results(self, img_id: Any, score_thrs: float) -> list[Record]:
        """An image's results above a score."""
        found = self.load_anns(self.get_ann_ids(img_ids=[img_id]))
        return [one for one in found if one["score"] > score_thrs]
