"""A report: results computed once, and shown as a page, as figures and as tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lvdet.calibration.calibrator import Calibrator
from lvdet.calibration.fitting import HIERARCHICAL, Recipe
from lvdet.calibration.labelled_scores import (
    IOU_THRESHOLD,
    Labelling,
    load_samples,
    require_right,
    require_same_classes,
)
from lvdet.comparison.compare import Bootstrap, compare_pairs
from lvdet.comparison.comparison_result import Comparison
from lvdet.comparison.detector_names import given_names, short_names
from lvdet.diagnosis.diagnose import FOREGROUND
from lvdet.errors import InputError
from lvdet.evaluation.load_pair import Annotations, ResultSource, load_pair
from lvdet.evaluation.pair import Pair
from lvdet.extras import extra
from lvdet.files.progress import Progress
from lvdet.files.writing import require_ending, write_text
from lvdet.limits.needs import everything
from lvdet.matching.match_options import MatchOptions
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Layout
from lvdet.reporting.calibration_study import CalibrationSource
from lvdet.reporting.detection_pictures import PictureFolder
from lvdet.reporting.detector_study import Study, study
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows

#: Bootstrap samples: a fifth of what `compare` draws, to save time.
RESAMPLES = 200
#: Detectors in one report; more are hard to tell apart.
MOST = 6


@dataclass(frozen=True, eq=False, repr=False)
class Report(Result):
    """Results of one or more detectors on the same images.

    studies:    one per detector
    comparison: differences from the first detector; None if there is only one
    images_selected: whether the images shown were requested by id
    """

    studies: list[Study]
    comparison: Comparison | None
    images_selected: bool
    ENDINGS = (".html", ".htm", ".json")

    @property
    def inputs(self) -> dict[str, Any]:  # type: ignore[override]
        """What was evaluated: the first detector's."""
        return self.studies[0].evaluation.inputs

    @property
    def federated(self) -> bool:
        """True for LVIS files."""
        return bool(self.inputs["format"] == "lvis")

    @property
    def warnings(self) -> list[str]:  # type: ignore[override]
        """What a reader of the numbers should know, without repetition."""
        every = [text for study in self.studies for text in study.evaluation.warnings]
        if self.comparison is not None:
            every += self.comparison.warnings
        every += [
            f"The scores were not calibrated: {study.uncalibrated}."
            for study in self.studies
            if study.calibration is None
        ]
        return list(dict.fromkeys(every))

    def notes(self) -> list[str]:
        """What the comparison says in words."""
        return [] if self.comparison is None else self.comparison.verdicts

    def title(self) -> str:
        """What the report is about, in one line."""
        return f"{', '.join(study.name for study in self.studies)} on {self.inputs['ground_truth']}"

    def layouts(self) -> list[Layout]:
        """The table of protocols."""
        from lvdet.reporting.report_tables import protocol_table

        return [protocol_table(self.studies)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the evaluation of each detector, and the comparison."""
        return {
            "detectors": {study.name: study.evaluation.to_dict() for study in self.studies},
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "warnings": self.warnings,
        }

    def to_html(self) -> str:
        """The page."""
        with extra("report", "a page"):
            from lvdet.reporting.page import render
        return render(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, or its numbers where the file ends in .json, whole or not at all."""
        if require_ending(path, self.ENDINGS) == ".json":
            super().save(path)
        else:
            write_text(self.to_html(), path)

    def save_figures(
        self, folder: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> list[Path]:
        """Writes every figure as PDF and PNG, and the tables as LaTeX, Markdown and CSV, into a
        folder; returns the paths."""
        with extra("report", "drawing figures"):
            from lvdet.reporting.paper_files import require_drawing, write_paper_files

        require_drawing()
        return write_paper_files(self, Path(folder), progress)


def report(
    gt: Annotations,
    detections: Sequence[ResultSource],
    *,
    names: Sequence[str] | None = None,
    iou: str | None = None,
    calibrators: Sequence[Calibrator] = (),
    train: Sequence[tuple[Annotations, ResultSource]] = (),
    method: str = HIERARCHICAL,
    images: str | os.PathLike[str] | None = None,
    image_ids: Sequence[int] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
    drop_duplicates: bool = False,
    progress: Progress | None = None,
) -> Report:
    """A report on detectors: tables, or paths of files, as for `evaluate`.

    names: names of the detectors; by default, those of their files
    calibrators: fitted calibrators, one per detector; without them, `method` is fitted to `train`
        (annotations and results on the training images, one pair per detector), or by
        cross-validation over these images
    images: a folder of images, to show detections on some of them; image_ids: which ones
    resamples, seed: of the bootstrap, if there are several detectors
    drop_duplicates: as for `evaluate`
    """
    if not 1 <= len(detections) <= MOST:
        raise InputError(f"{len(detections)} results files to report on, expected 1 to {MOST}")
    _require_one_each(calibrators, train, len(detections))
    if image_ids and images is None:
        raise InputError("image ids were given without a folder of images")
    folder = None if images is None else PictureFolder(Path(images), tuple(image_ids))
    Recipe.of(method)  # invalid arguments fail before the work begins
    bootstrap = Bootstrap(resamples, seed=seed)
    pairs: list[Pair] = []
    for one in detections:
        pair = load_pair(
            pairs[0].gt if pairs else gt,
            one,
            None if folder is not None else everything,
            MatchOptions(pairs[0].iou if pairs else iou, partners_at=FOREGROUND),
            drop_duplicates=drop_duplicates,
            progress=progress,
        )
        pairs.append(pair)
    if names:
        called = given_names(names, len(pairs))
    else:
        called = short_names([pair.results.source for pair in pairs])
    sources = _sources(pairs, method, calibrators, train, progress)
    studies: list[Study] = []
    for pair, name, source in zip(pairs, called, sources, strict=True):
        studies.append(study(pair, name, source, folder, progress=progress))
        if folder is not None:  # all detectors on the same images
            shown = tuple(picture.image_id for picture in studies[0].pictures)
            folder = replace(folder, image_ids=shown)
    comparison = None
    if len(pairs) > 1 and len(pairs[0].gt.images) > 1:  # one image cannot be resampled
        comparison = compare_pairs(pairs, names=called, bootstrap=bootstrap, progress=progress)
    return Report(studies, comparison, bool(image_ids))


def _sources(
    pairs: Sequence[Pair],
    method: str,
    calibrators: Sequence[Calibrator],
    train: Sequence[tuple[Annotations, ResultSource]],
    progress: Progress | None,
) -> list[CalibrationSource]:
    """Where the calibrated scores of each pair come from; raises if its classes do not fit."""
    if calibrators:
        for pair, calibrator in zip(pairs, calibrators, strict=True):
            ranking = pair.results.ranking
            known = category_rows(pair.gt, ranking) >= 0
            calibrator.class_rows(ranking.category_ids[known], ranking.source)
        return [CalibrationSource(method, calibrator=one) for one in calibrators]
    if not train:
        return [CalibrationSource(method) for _ in pairs]
    sources = []
    read: dict[object, GroundTruth] = {}
    for pair, (truth, detections) in zip(pairs, train, strict=True):
        key = id(truth) if isinstance(truth, GroundTruth) else os.fspath(truth)
        truth = read.get(key, truth)  # shared training annotations are read once
        learned, training = load_samples(truth, detections, Labelling(pair.iou), progress)
        read[key] = learned.gt
        require_same_classes(training, pair.gt.categories)
        require_right(training, IOU_THRESHOLD)
        sources.append(CalibrationSource(method, training=training))
    return sources


def _require_one_each(
    calibrators: Sequence[Calibrator],
    train: Sequence[tuple[Annotations, ResultSource]],
    detectors: int,
) -> None:
    """Raises unless calibration is given for every detector, since each has its own scores."""
    if calibrators and train:
        raise InputError("pass either `calibrators` or `train`, not both")
    if calibrators and len(calibrators) != detectors:
        raise InputError(
            f"{len(calibrators)} calibrators for {detectors} results files, expected one each"
        )
    if train and len(train) != detectors:
        raise InputError(
            f"{len(train)} training sets for {detectors} results files, expected one each"
        )
