"""Compares detectors with a baseline, on the same bootstrap samples of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.comparison.bootstrap import LANES, Resampler, as_it_is, draw, group_rows
from lvdet.comparison.comparison_result import CLASSES_SHOWN, ClassDifference, Compared, Comparison
from lvdet.comparison.detector_names import given_names, short_names
from lvdet.comparison.differences import (
    Difference,
    Spread,
    by_error,
    discoveries,
)
from lvdet.comparison.run_spread import run_errors
from lvdet.comparison.verdicts import GROUPS, sentences
from lvdet.errors import InputError
from lvdet.evaluation.input_warnings import input_warnings
from lvdet.evaluation.load_pair import Annotations, ResultSource, load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import Plan
from lvdet.evaluation.summary import NAMES, PROTOCOLS
from lvdet.files.progress import Progress, track
from lvdet.limits.budgets import PerClass, describe
from lvdet.limits.needs import everything
from lvdet.matching.match_options import MatchOptions
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows
from lvdet.threads import thread_count

RESAMPLES = 1_000
CONFIDENCE = 0.95
#: Fewer bootstrap samples say nothing of their spread.
_FEWEST_RESAMPLES = 100
#: Blocks of bootstrap samples that a thread processes before progress is reported.
_BLOCKS = 4
#: A class with objects in fewer images is not tested for itself: its standard error is too small.
FEWEST_IMAGES = 10


@dataclass(frozen=True)
class Bootstrap:
    """How images are resampled: the number of samples, the confidence level and the seed."""

    resamples: int = RESAMPLES
    confidence: float = CONFIDENCE
    seed: int = 0

    def __post_init__(self) -> None:
        resamples, seed = self.resamples, self.seed
        if isinstance(resamples, bool) or not isinstance(resamples, int):
            raise InputError(f"resamples is {resamples!r}, expected an integer")
        if resamples < _FEWEST_RESAMPLES:
            raise InputError(f"resamples is {resamples}, expected at least {_FEWEST_RESAMPLES}")
        if not 0 < self.confidence < 1:
            raise InputError(f"confidence is {self.confidence}, expected a number between 0 and 1")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"seed is {seed!r}, expected a non-negative integer")


DEFAULT = Bootstrap()


def compare(
    gt: Annotations,
    detections: Sequence[ResultSource],
    *,
    names: Sequence[str] | None = None,
    runs: int = 1,
    iou: str | None = None,
    dets_per_image: int | None = None,
    dets_per_class: int | None = None,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    classes_shown: int = CLASSES_SHOWN,
    exact_lvis: bool = False,
    drop_duplicates: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Compares detectors with the first one, under AP-Old, AP-Fixed and AP-Pool.

    Every difference has a confidence interval, from bootstrap samples of the images that all
    detectors share.

    detections: tables, or paths of results files, two or more; the first is the baseline.
    names: names of the detectors; by default the ends of their paths.
    runs: number of results per detector, from trainings with different seeds, adjacent in
        `detections`. Metrics are means over the runs, and an interval is the wider of two: over
        images, and over runs by Student's t.
    iou, dets_per_image, dets_per_class, exact_lvis, drop_duplicates: as for `evaluate`.
    resamples: number of bootstrap samples.
    confidence: confidence level of the intervals.
    seed: random seed.
    classes_shown: how many classes the tables list: those that differ most clearly.
    """
    if isinstance(detections, str) or not isinstance(detections, Sequence):
        raise InputError("detections must be a list of tables or paths, baseline first")
    _require_several(len(detections), runs)
    bootstrap = Bootstrap(resamples, confidence, seed)
    if sum(isinstance(source, str) and source == "-" for source in detections) > 1:
        raise InputError("standard input (-) can be read only once")

    # A bootstrap sample may lack the images of the best detections: any other may count then.
    pairs: list[Pair] = []
    for source in detections:
        pair = load_pair(
            pairs[0].gt if pairs else gt,
            source,
            everything,
            MatchOptions(iou, exact_lvis=exact_lvis),
            drop_duplicates=drop_duplicates,
            progress=progress,
        )
        pairs.append(pair)
    if iou is None:
        _require_same_kind(pairs)
    return compare_pairs(
        pairs,
        names=names,
        runs=runs,
        dets_per_image=dets_per_image,
        dets_per_class=dets_per_class,
        bootstrap=bootstrap,
        classes_shown=classes_shown,
        progress=progress,
    )


def compare_pairs(
    pairs: Sequence[Pair],
    *,
    names: Sequence[str] | None = None,
    runs: int = 1,
    dets_per_image: int | None = None,
    dets_per_class: int | None = None,
    bootstrap: Bootstrap = DEFAULT,
    classes_shown: int = CLASSES_SHOWN,
    progress: Progress | None = None,
) -> Comparison:
    """The same for pairs with the same ground truth, whose results are complete."""
    _require_several(len(pairs), runs)
    _require_alike(pairs)
    sources = [pair.results.source for pair in pairs]
    called = (
        short_names(sources)[::runs] if names is None else given_names(names, len(pairs) // runs)
    )
    gt, resamples, confidence = pairs[0].gt, bootstrap.resamples, bootstrap.confidence
    chosen = Plan(dets_per_image=dets_per_image, dets_per_class=dets_per_class).chosen(gt)
    budgets = {item.name: item.budgets for item in chosen}
    fixed = budgets["fixed"][0]
    assert isinstance(fixed, PerClass)
    every = np.arange(len(gt.categories))
    warnings: list[str] = []
    for pair in pairs:
        found = input_warnings(pair, budgets, every)
        warnings += [text for text in found if text not in warnings]
    resamplers = [Resampler(pair, old=budgets["old"][0], fixed=fixed) for pair in pairs]
    with track(progress, "resampling images", "resamples") as update:
        blocks = _BLOCKS * thread_count()
        done = min((blocks - 1) * LANES, resamples)  # beside the set itself
        drawing = _Drawing(gt, resamplers, runs, done, bootstrap.seed)
        while True:
            if update is not None:
                update(done, resamples)
            if done == resamples:
                break
            count = min(blocks * LANES, resamples - done)
            drawing.add(done, count)
            done += count
    texts = {name: describe(limits) for name, limits in budgets.items()}
    thin = _thin(gt, drawing.images)
    compared = []
    for place, name in enumerate(called[1:], start=1):
        metrics = drawing.metrics(place, confidence)
        classes = drawing.classes(place, confidence)
        beyond = drawing.old_beyond_fixed(place, confidence)
        verdicts = sentences(called[0], name, metrics, beyond, texts, classes, thin, confidence)
        compared.append(Compared(name, metrics, beyond, classes, verdicts))
    warnings += _thin_warnings(thin)
    return Comparison(
        called[0],
        texts,
        compared,
        resamples,
        confidence,
        bootstrap.seed,
        _facts(pairs, called, runs),
        warnings,
        classes_shown,
    )


class _Drawing:
    """All detectors on the original set and on bootstrap samples.

    metrics: [detectors, 3, 4], classes: [detectors, 2, C] (AP-Old, AP-Fixed), on the set itself
    images: [C] how many images have objects of each class
    """

    def __init__(
        self, gt: GroundTruth, resamplers: Sequence[Resampler], runs: int, count: int, seed: int
    ) -> None:
        """`runs` runs of each detector, with bootstrap samples processed alongside the original
        set."""
        self._gt, self._resamplers, self._runs, self._seed = gt, resamplers, runs, seed
        images = len(gt.images)
        weights = np.concatenate([as_it_is(images), draw(images, 0, count, seed=seed)])
        metrics, classes = self._values(weights)
        self._run_metrics, self._run_classes = metrics[:, :, 0], classes[:, :, 0]
        metrics, classes = metrics.mean(axis=1), classes.mean(axis=1)
        self._metrics, self._classes = metrics[:, 0], classes[:, 0]
        self._metric_spread = Spread(self._metrics[1:] - self._metrics[0])
        self._beyond_spread = Spread(_old_beyond_fixed(self._metrics[1:] - self._metrics[0]))
        self._class_spread = Spread(self._classes[1:] - self._classes[0])
        self.objects, self.images = resamplers[0].objects()
        self._group_images = resamplers[0].group_images(gt.categories)
        self._take(metrics[:, LANES:], classes[:, LANES:], count)

    def add(self, first: int, count: int) -> None:
        """Draws more samples, identified by their numbers."""
        weights = draw(len(self._gt.images), first, count, seed=self._seed)
        metrics, classes = self._values(weights)
        self._take(metrics.mean(axis=1), classes.mean(axis=1), count)

    def _take(self, metrics: NDArray[np.float64], classes: NDArray[np.float64], count: int) -> None:
        # In parts of one size, so that the last bit does not depend on what comes together.
        for begin in range(0, count, LANES):
            part = slice(begin, min(begin + LANES, count))
            away = (metrics[1:, part] - metrics[0, part]).swapaxes(0, 1)
            self._metric_spread.add(away)
            self._beyond_spread.add(_old_beyond_fixed(away))
            self._class_spread.add((classes[1:, part] - classes[0, part]).swapaxes(0, 1))

    def metrics(self, place: int, confidence: float) -> dict[str, dict[str, Difference]]:
        """The metrics of a detector, by protocol and name."""
        errors = np.maximum(
            self._metric_spread.errors()[place - 1], run_errors(self._run_metrics, confidence)
        )
        # Few images with objects have no spread to speak of.
        errors = np.where(self._group_images < FEWEST_IMAGES, np.nan, errors)
        found = _differences(self._metrics[0], self._metrics[place], errors, confidence)
        return {
            protocol: dict(zip(NAMES, row, strict=True))
            for protocol, row in zip(PROTOCOLS, found, strict=True)
        }

    def old_beyond_fixed(self, place: int, confidence: float) -> Difference:
        """The difference in AP under AP-Old, compared with the difference under AP-Fixed."""
        old, fixed = (self._metrics[place] - self._metrics[0])[:2, 0].tolist()
        of_runs = run_errors(_old_beyond_fixed(self._run_metrics), confidence)
        error = np.maximum(self._beyond_spread.errors()[place - 1], of_runs)
        return by_error(fixed, old, float(error), confidence)

    def classes(self, place: int, confidence: float) -> list[ClassDifference]:
        """The classes of a detector that have objects."""
        categories = self._gt.categories
        errors = np.maximum(
            self._class_spread.errors()[place - 1], run_errors(self._run_classes, confidence)
        )
        rows = np.flatnonzero(self.objects).tolist()
        base, own = self._classes[0].T[rows], self._classes[place].T[rows]
        pairs = _differences(base, own, errors.T[rows], confidence)
        tested = [bool(self.images[row] >= FEWEST_IMAGES) for row in rows]
        chances = [
            fixed.p_value if able else float("nan")
            for (_, fixed), able in zip(pairs, tested, strict=True)
        ]
        held = discoveries(chances, 1 - confidence)
        return [
            ClassDifference(
                int(categories.ids[row]),
                categories.names[row],
                str(categories.frequency[row]),
                int(self.objects[row]),
                int(self.images[row]),
                old,
                fixed,
                able,
                holds,
            )
            for row, (old, fixed), able, holds in zip(rows, pairs, tested, held, strict=True)
        ]

    def _values(
        self, weights: NDArray[np.uint8]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[detectors, runs, R, 3, 4] metrics and [detectors, runs, R, 2, C] classes of bootstrap
        samples."""
        drawn = [resampler.values(weights) for resampler in self._resamplers]
        metrics = np.stack([one.metrics(self._gt.categories) for one in drawn])
        classes = np.stack([np.stack([one.old, one.fixed], axis=1) for one in drawn])
        runs = (-1, self._runs)
        return metrics.reshape(*runs, *metrics.shape[1:]), classes.reshape(
            *runs, *classes.shape[1:]
        )


def _old_beyond_fixed(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """[…] the difference in AP under AP-Old minus that under AP-Fixed, from […, 3, 4]
    differences."""
    return differences[..., 0, 0] - differences[..., 1, 0]


def _require_several(results: int, runs: int) -> None:
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InputError(f"runs is {runs!r}, expected an integer of at least 1")
    if results < 2 * runs:
        raise InputError(f"{results} results to compare, expected at least {2 * runs}")
    if results % runs:
        raise InputError(f"{results} results to compare, expected a multiple of {runs} runs")


def _differences(
    baseline: NDArray[np.float64],
    value: NDArray[np.float64],
    error: NDArray[np.float64],
    confidence: float,
) -> list[list[Difference]]:
    """The differences between two tables of metrics, with standard errors."""
    tables = (baseline.tolist(), value.tolist(), error.tolist())
    return [
        [by_error(*numbers, confidence) for numbers in zip(*rows, strict=True)]
        for rows in zip(*tables, strict=True)
    ]


def _require_alike(pairs: Sequence[Pair]) -> None:
    """Raises for pairs with different annotations or IoU kinds, or with incomplete results."""
    first = pairs[0]
    if len(first.gt.images) < 2:
        raise InputError(f"{first.gt.source} has fewer than two images, so it cannot be resampled")
    for pair in pairs:
        source = pair.results.source
        if pair.gt is not first.gt:
            raise InputError(f"{source} and {first.results.source} use different annotations")
        if pair.iou != first.iou:
            raise InputError(
                f"{source} is compared with iou {pair.iou}, but {first.results.source} with "
                f"{first.iou}"
            )
        ranking = pair.results.ranking
        kept = _native.count_rows(ranking.category, len(ranking.category_ids))
        known = category_rows(pair.gt, ranking) >= 0
        if (kept < pair.results.per_class)[known].any():
            raise InputError(f"{source} was read without rows that a bootstrap sample may need")


def _require_same_kind(pairs: Sequence[Pair]) -> None:
    """Raises if only some of the results have masks; results without rows have neither."""
    full = [pair.results for pair in pairs if pair.results.total]
    masked = [results for results in full if results.detections.masks is not None]
    if masked and len(masked) < len(full):
        lacking = next(results for results in full if results.detections.masks is None)
        raise InputError(
            f"{masked[0].source} has masks but {lacking.source} has none: pass --iou bbox to "
            "compare boxes"
        )


def _thin(gt: GroundTruth, images: NDArray[np.int64]) -> dict[str, str]:
    """The metrics whose classes mostly have few images, and how many classes that is."""
    found = {}
    for name, rows in group_rows(gt.categories).items():
        there = rows[images[rows] > 0]
        thin = int((images[there] < FEWEST_IMAGES).sum())
        if thin and 2 * thin > len(there):
            kind = f"{GROUPS[name]} " if name in GROUPS else ""
            found[name] = f"{thin:,} of {len(there):,} {kind}classes"
    return found


def _thin_warnings(thin: Mapping[str, str]) -> list[str]:
    """Warnings about intervals that rest on few images."""
    if not thin:
        return []
    return [
        f"{', '.join(thin.values())} have objects in fewer than {FEWEST_IMAGES} images: the "
        f"confidence intervals of {', '.join(thin)} may be too narrow."
    ]


def _facts(pairs: Sequence[Pair], names: Sequence[str], runs: int) -> dict[str, Any]:
    """The inputs of the comparison, for the output."""
    facts = pairs[0].facts()
    del facts["detection_count"]
    facts.pop("duplicates_dropped", None)
    facts.pop("skipped_shards", None)
    facts["detections"] = [
        {"name": name, "source": pair.results.source, "detection_count": pair.results.total}
        | ({} if pair.dropped is None else {"duplicates_dropped": pair.dropped})
        | ({"skipped_shards": pair.skipped} if pair.skipped else {})
        for name, pair in zip([name for name in names for _ in range(runs)], pairs, strict=True)
    ]
    return facts | ({} if runs == 1 else {"runs": runs})
