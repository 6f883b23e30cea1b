"""Calibration, fitted once and applied anywhere."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.calibrator_file import Origin, Record, read_record, write_record
from lvdet.calibration.fitting import HIERARCHICAL, IDENTITY, Recipe, fit_classes
from lvdet.calibration.labelled_scores import (
    IOU_THRESHOLD,
    Labelling,
    Samples,
    load_samples,
    require_chances,
    require_right,
)
from lvdet.calibration.measure import Localised, Measurement, measure
from lvdet.calibration.thresholds import Thresholds
from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import first_ids
from lvdet.evaluation.input_warnings import reading_warnings
from lvdet.evaluation.load_pair import Annotations, DetectionSource, FilePath, ResultSource
from lvdet.evaluation.protocols import FIXED_PER_CLASS
from lvdet.files.convert import convert
from lvdet.files.detection_files import read_detections
from lvdet.files.known_images import ImageSource
from lvdet.files.progress import Progress, Update, track
from lvdet.tables.categories import Categories
from lvdet.tables.detections import Detections
from lvdet.tables.problems import rows_of


class Calibrator:
    """Scores that mean the same for every class: the probability that a detection is correct.

        cal = lvdet.Calibrator("beta").fit("train.json", "train_results.json")
        lvdet.evaluate("val.json", cal.transform(lvdet.read_detections("results.json")))
        cal.save("cal.json"); lvdet.Calibrator.load("cal.json")

    method:   "histogram", "bbq", "bbq-bic", "beta", "isotonic", "platt", "temperature", "identity",
        or "hierarchical", which also suits classes with few detections.
    grouping: whose detections a map is fitted on: each "class", its "frequency" group, or "all".
    missing:  treatment of classes without a correct detection: "zero" as in the paper, "keep" for
        unchanged scores, or "frequency" for the fit of the class's frequency group.

    The order within a class is preserved, including ties, except by "histogram", "bbq" and
    "bbq-bic", whose steps may decrease.
    """

    def __init__(
        self, method: str = HIERARCHICAL, *, grouping: str = "class", missing: str | None = None
    ) -> None:
        self._recipe = Recipe.of(method, grouping, missing)
        self._record: Record | None = None
        #: What to know about the files it was fitted to.
        self.warnings_: list[str] = []

    def __repr__(self) -> str:
        recipe = self._recipe
        state = "not fitted" if self._record is None else f"{len(self.categories_):,} classes"
        return f"Calibrator({recipe.method!r}, grouping={recipe.grouping!r}, {state})"

    @property
    def recipe(self) -> Recipe:
        """The method, the grouping and the treatment of missing classes."""
        return self._recipe

    @property
    def record_(self) -> Record:
        """What was fitted, and on what; raises if nothing was."""
        if self._record is None:
            raise InputError("the calibrator is not fitted: call `fit`, or load a fitted one")
        return self._record

    @property
    def categories_(self) -> Categories:
        """The classes it was fitted for."""
        return self.record_.categories

    def fit(
        self,
        gt: Annotations,
        detections: ResultSource,
        *,
        iou: str | None = None,
        iou_threshold: float = IOU_THRESHOLD,
        dets_per_class: int = FIXED_PER_CLASS,
        progress: Progress | None = None,
    ) -> Calibrator:
        """Fits on annotations and results, given as tables or paths as for `evaluate`.

        A detection is correct if AP's match at `iou_threshold` says so. Detections that AP ignores
        (unverified, or unmatched where the class is not exhaustive) are left out. The best
        `dets_per_class` of each class are used.
        """
        labelling = Labelling(iou, iou_threshold, dets_per_class)
        pair, samples = load_samples(gt, detections, labelling, progress)
        require_right(samples, iou_threshold)
        origin = Origin(
            pair.gt.source, pair.results.source, pair.iou, float(iou_threshold), dets_per_class
        )
        self.warnings_ = reading_warnings(pair)
        with track(progress, f"fitting {self._recipe.method}", "classes") as update:
            return self.fit_samples(samples, origin, update=update)

    def fit_samples(
        self,
        samples: Samples,
        origin: Origin,
        *,
        update: Update | None = None,
    ) -> Calibrator:
        """Fits on scores and labels."""
        self._record = Record(
            self._recipe,
            origin,
            samples.categories,
            samples.counts(),
            samples.right_counts(),
            fit_classes(samples, self._recipe, update=update),
        )
        return self

    def transform(self, detections: DetectionSource, *, images: ImageSource = None) -> Detections:
        """Returns the detections with calibrated scores; `images` as for `read_detections`."""
        table = read_detections(detections, images=images)
        rows = self.class_rows(table.category_ids, table.source)
        require_chances(table.score, table.named)
        return table.with_scores(self.record_.fitted.new_scores(rows[table.category], table.score))

    def fit_transform(
        self, gt: Annotations, detections: DetectionSource, **options: Any
    ) -> Detections:
        """Fits, then returns the same detections with calibrated scores; `options` as for `fit`.

        The scores look better here than on other images, because these are the images that it was
        fitted on.
        """
        table = read_detections(detections, images=gt)
        return self.fit(gt, table, **options).transform(table)

    def transform_file(
        self,
        source: FilePath | list[FilePath],
        target: FilePath,
        *,
        images: ImageSource = None,
        progress: Progress | None = None,
    ) -> int:
        """Writes a results file with calibrated scores, in bounded memory; returns the number of
        rows.

        images: the annotations; needed if image ids are file names or boxes are fractions of the
                image size
        """
        written, _ = convert(
            source, target, images=images, change=self.transform, progress=progress
        )
        return written

    def measure(
        self,
        gt: Annotations,
        detections: DetectionSource,
        *,
        iou: str | None = None,
        iou_threshold: float = IOU_THRESHOLD,
        dets_per_class: int = FIXED_PER_CLASS,
        laece_iou_threshold: float = 0.0,
        dets_per_image: int | None = None,
        thresholds: Thresholds | FilePath | None = None,
        progress: Progress | None = None,
    ) -> Measurement:
        """Measures how well calibrated the scores are: expected, maximum and adaptive calibration
        error, Brier score and log loss, overall, by frequency group and by class; and LaECE, LaACE
        and D-ECE.

        laece_iou_threshold: IoU at which LaECE and LaACE match detections; 0 means any overlap.
        dets_per_image: limit for LaECE, LaACE and D-ECE, instead of LVIS's 300 per image or COCO's
            100 per image and class.
        thresholds: from `find_thresholds`, or its file; LaECE, LaACE and D-ECE ignore detections
            with lower scores.

        `Calibrator("identity").measure(gt, detections)` measures the detector's own scores.
        """
        if self._recipe.method != IDENTITY:
            detections = self.transform(detections, images=gt)
        return measure(
            gt,
            detections,
            Labelling(iou, iou_threshold, dets_per_class),
            Localised(laece_iou_threshold, dets_per_image, thresholds),
            progress,
        )

    def class_rows(self, category_ids: NDArray[np.int64], source: str) -> NDArray[np.int32]:
        """Rows of the given classes among those it was fitted for; raises for an unknown class."""
        rows = rows_of(self.categories_.ids, category_ids)
        if (rows < 0).any():
            raise InputError(
                f"{source}: the calibrator was fitted on {self.record_.origin.ground_truth} for "
                f"{len(self.categories_):,} classes, which do not include category_id "
                f"{first_ids(category_ids[rows < 0])}"
            )
        return rows

    def summary(self) -> str:
        """What it was fitted on, on one line."""
        record, recipe = self.record_, self._recipe
        silent = int((record.right == 0).sum())
        note = ""
        if silent:
            given = {
                "zero": "scores lowered to almost 0",
                "keep": "scores unchanged",
                "frequency": "fit of the frequency group"
                if record.categories.groups()
                else "fit of all classes",
                "": "inferred from the other classes",
            }[recipe.missing]
            classes = "class" if silent == 1 else "classes"
            note = f"; {silent:,} {classes} without a correct detection: {given}"
        grouping = "" if recipe.method == "hierarchical" else f" by {recipe.grouping}"
        return (
            f"{recipe.method}{grouping}, fitted on {record.detections.sum():,} "
            f"detections ({record.right.sum():,} correct) of {len(record.categories):,} "
            f"classes{note}"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes plain JSON atomically."""
        write_record(self.record_, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Calibrator:
        """Reads what `save` wrote; rejects damaged files and other versions."""
        record = read_record(path)
        recipe = record.recipe
        calibrator = Calibrator(
            recipe.method, grouping=recipe.grouping, missing=recipe.missing or None
        )
        calibrator._record = record
        return calibrator
