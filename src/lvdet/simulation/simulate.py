"""A simulated detector with known properties, and the ground truth it looks at.

The scores of class c follow g = Beta(a, b) over the verified (image, class) cells, those whose
detections count. Correct detections are drawn from s * g(s), which is Beta(a + 1, b), incorrect
ones from (1 - s) * g(s), which is Beta(a, b + 1), in the ratio a : b. So a detection with score s
is correct with probability s. The detector is perfectly calibrated, so whatever it loses to a
budget or gains by gaming one (the paper's section 3) is caused by the metric. A correct detection
has IoU 0.5 or more with a box of its own, an incorrect one below 0.5 with every box of its class:
calibration holds at IoU 0.5, among the detections AP counts (in not-exhaustive cells only the right
ones). With masks, whose pixels are coarse against small boxes, it holds for the boxes and nearly
for the masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.simulation.ellipses import ellipses
from lvdet.simulation.simulated_detector import Candidates, Detector, joined, pushed
from lvdet.simulation.simulated_truth import Floats, Ints, Lattice, annotate, rarity_of
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth

_OBJECTS = {"lvis": 12.4, "coco": 7.3}
#: Images processed at a time, to bound memory use.
_CHUNK = 512


@dataclass(frozen=True)
class Settings:
    """The settings of `simulate`."""

    images: int = 500
    classes: int = 120
    objects_per_image: float | None = None
    dets_per_image: int | None = 300
    candidates_per_image: int | None = None
    bias: float = 0.0
    localisation: float = 0.6
    masks: bool = False
    style: str = "lvis"
    decimals: tuple[int, int] = (2, 5)
    seed: int = 0
    class_bias: float = 0.0
    verified_share: float | None = None

    def __post_init__(self) -> None:
        for name in ("images", "classes", "dets_per_image", "candidates_per_image"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}, expected at least 1")
        if not np.isfinite(self.bias):
            raise InputError(f"bias is {self.bias}, expected a finite number")
        if not 0 <= self.class_bias < np.inf:
            raise InputError(f"class_bias is {self.class_bias}, expected a non-negative number")
        if self.objects_per_image is not None and not 0 < self.objects_per_image < np.inf:
            raise InputError(
                f"objects_per_image is {self.objects_per_image}, expected a positive number"
            )
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}, expected 0 or more")
        if not 0 <= self.localisation <= 1:
            raise InputError(f"localisation is {self.localisation}, expected a number from 0 to 1")
        if self.style not in _OBJECTS:
            raise InputError(f"style is {self.style!r}, expected 'lvis' or 'coco'")
        if self.verified_share is not None:
            if not 0 < self.verified_share <= 1:
                raise InputError(
                    f"verified_share is {self.verified_share}, expected a number above 0 and "
                    "at most 1"
                )
            if self.style == "coco":
                raise InputError("verified_share is for LVIS: in COCO every class is verified")
            if self.most is None:
                raise InputError("verified_share needs dets_per_image or candidates_per_image")

    @property
    def most(self) -> int | None:
        """The higher of the two numbers per image, None without either."""
        return max(self.candidates_per_image or 0, self.dets_per_image or 0) or None

    @property
    def lattice(self) -> Lattice:
        """The grid of the boxes: whole pixels if there are masks."""
        return Lattice(1, 1) if self.masks else Lattice(10 ** self.decimals[0], 0)


def simulate(
    images: int = 500,
    classes: int = 120,
    *,
    objects_per_image: float | None = None,
    dets_per_image: int | None = 300,
    candidates_per_image: int | None = None,
    bias: float = 0.0,
    localisation: float = 0.6,
    masks: bool = False,
    style: str = "lvis",
    decimals: tuple[int, int] = (2, 5),
    seed: int = 0,
    class_bias: float = 0.0,
    verified_share: float | None = None,
) -> tuple[GroundTruth, Detections]:
    """Simulates ground truth with a long tail of classes, and the results of a calibrated detector
    on it.

    images, classes: their numbers; every class has ground truth.
    objects_per_image: on average; by default 12.4 for LVIS and 7.3 for COCO.
    dets_per_image: the detector's own budget: exactly this many detections in every image, the best
        by score across all classes. None keeps all candidates.
    candidates_per_image: the number of candidates per image before that limit, and never fewer than
        those in verified cells. The default depends on the vocabulary, for LVIS about 50 plus 0.7
        per class, and grows as the budget requires. Candidates that only fill up an image score
        below 0.001 and are never correct.
    bias: how far the scores of the rarest class are pushed down, in logits; of other classes in
        proportion to the logarithm of their expected frequency, 0 for the most frequent. The order
        within a class is preserved as far as `decimals` can represent it.
    class_bias: standard deviation of an additional push, drawn for each class.
    localisation: in [0, 1], how tight correct boxes are: their IoU with the object spreads over 0.5
        to 1 with mean near 0.5 + localisation / 2, and is 1 for 1.
    masks: ellipses for objects and detections; boxes are then their tight boxes, in whole pixels.
    style: "lvis", with federated lists and frequencies, or "coco", with crowds.
    decimals: decimals of box coordinates and of scores.
    verified_share: how much of what an image has, on average, is in verified cells: in images of
        300 candidates, 0.5 puts 150 there. The detector makes that many more incorrect detections
        there, with lower scores, so it stays calibrated. By default what the classes bring, and the
        vocabulary's other candidates besides.

    With the same seed, another `bias`, `class_bias` or `dets_per_image` is the same detector:
    ground truth and candidates stay as they are (fillers excepted), only scores or the cut change.
    Detections come grouped by image, by descending score before rounding.
    """
    settings = Settings(
        images,
        classes,
        objects_per_image,
        dets_per_image,
        candidates_per_image,
        bias,
        localisation,
        masks,
        style,
        decimals,
        seed,
        class_bias,
        verified_share,
    )
    truth, parts = _simulated(settings)
    return truth, _table(truth, joined(list(parts)), settings.lattice, masks)


def simulate_training(
    settings: Settings, images: int, *, overconfidence: float = 0.0
) -> tuple[GroundTruth, Detections]:
    """Simulates the detector's training set and its results there: other images of the same
    classes, found equally well, scored with the same biases.

    images: number of images, instead of that in the settings.
    overconfidence: how far the scores of correct detections of the rarest class are pushed up, in
        logits, because the detector remembers; of other classes in proportion to the logarithm of
        their expected frequency, 0 for the most frequent.
    """
    if not 0 <= overconfidence < np.inf:
        raise InputError(f"overconfidence is {overconfidence}, expected a non-negative number")
    _, rank = _annotated(settings, 0)
    training = replace(settings, images=images)
    truth, _ = _annotated(training, 3, rank)
    parts = _found(training, truth, rarity_of(rank), stream=4, overconfidence=overconfidence)
    return truth, _table(truth, joined(list(parts)), settings.lattice, settings.masks)


def simulate_in_parts(settings: Settings) -> tuple[GroundTruth, Iterator[Detections]]:
    """Like `simulate`, with the detections in tables of some images each, generated on demand: for
    results that exceed memory."""
    truth, parts = _simulated(settings)
    return truth, (_table(truth, part, settings.lattice, settings.masks) for part in parts)


def _simulated(settings: Settings) -> tuple[GroundTruth, Iterator[Candidates]]:
    truth, rank = _annotated(settings, 0)
    return truth, _found(settings, truth, rarity_of(rank), stream=2)


def _annotated(
    settings: Settings, stream: int, rank: Ints | None = None
) -> tuple[GroundTruth, Ints]:
    objects, style = settings.objects_per_image, settings.style
    return annotate(
        np.random.default_rng([settings.seed, stream]),
        settings.images,
        settings.classes,
        objects_per_image=_OBJECTS[style] if objects is None else objects,
        federated=style == "lvis",
        masks=settings.masks,
        lattice=settings.lattice,
        rank=rank,
    )


def _found(
    settings: Settings,
    truth: GroundTruth,
    rarity: Floats,
    *,
    stream: int,
    overconfidence: float = 0.0,
) -> Iterator[Candidates]:
    """The detections that the detector keeps, for some images at a time."""
    seed, share, most = settings.seed, settings.verified_share, settings.most
    # The classes' expected frequencies fall as (1 + 12 * rarity) ** -3.
    tail = np.log1p(12 * rarity) / np.log(13)
    own = np.random.default_rng([seed, 5]).normal(0.0, settings.class_bias, len(rarity))
    push = settings.bias * tail + own
    detector = Detector(
        np.random.default_rng([seed, 1]),
        truth,
        rarity,
        settings.lattice,
        settings.localisation,
        overconfidence * tail,
        None if share is None or most is None else share * most,
    )
    candidates = settings.candidates_per_image if share is None else most
    for chunk, first in enumerate(range(0, settings.images, _CHUNK)):
        rng = np.random.default_rng([seed, stream, chunk])
        rows = np.arange(first, min(first + _CHUNK, settings.images))
        every = detector.look(rng, rows, candidates, settings.dets_per_image)
        score = pushed(every.score, push[every.category])
        order = _best(every.image, score, settings.dets_per_image)
        yield replace(every.take(order), score=np.round(score[order], settings.decimals[1]))


def _best(image: NDArray[np.int32], score: Floats, number: int | None) -> Ints:
    """Rows by image and descending score, the first `number` of each image."""
    order = np.lexsort((-score, image))
    if number is None:
        return order
    image = image[order]
    return order[np.arange(len(order)) - np.searchsorted(image, image) < number]


def _table(truth: GroundTruth, found: Candidates, lattice: Lattice, masks: bool) -> Detections:
    """The detections as a table; classes and images are numbered by first appearance."""
    shown = np.bincount(found.image, minlength=len(truth.images)) > 0
    first = np.full(len(truth.categories), len(found.image))
    first[found.category[::-1]] = np.arange(len(found.image))[::-1]
    rows = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(found.image))]
    place = np.zeros(len(first), dtype=np.int32)
    place[rows] = np.arange(len(rows))
    shapes = None
    if masks:
        size = truth.images.height[found.image], truth.images.width[found.image]
        shapes, _ = ellipses(found.box.astype(np.int64), *size)
    return Detections(
        (np.cumsum(shown, dtype=np.int32) - np.int32(1))[found.image],
        place[found.category],
        found.score,
        found.box / lattice.steps,
        truth.images.ids[shown],
        truth.categories.ids[rows],
        shapes,
        source="simulated detections",
    )
