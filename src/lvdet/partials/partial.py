"""What one part of the images contributes to an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import require_known_class
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.load_pair import Annotations, DetectionSource
from lvdet.evaluation.protocols import Plan, evaluate_pair
from lvdet.evaluation.summary import PROTOCOLS
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.detection_files import named_files, read_detections
from lvdet.limits.budgets import Budget
from lvdet.matching.match_options import MatchOptions
from lvdet.partials.contribution import Form, own_annotations, pair_of, part_of
from lvdet.partials.needed_rows import Request, requests_of
from lvdet.partials.part_bytes import from_bytes, to_bytes
from lvdet.partials.part_columns import PartColumns, joined
from lvdet.partials.part_settings import PartSettings
from lvdet.partials.truth_facts import class_digest, facts_of, mask_digest_of
from lvdet.tables.categories import Categories
from lvdet.tables.description import counted, describe_line
from lvdet.tables.detections import Detections, encode_ids
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import rows_of
from lvdet.tables.results import Results

#: The name in messages of detections from parts with different names.
SEVERAL = "detections"


@dataclass(frozen=True, eq=False, repr=False)
class Partial:
    """What one part of the images contributes to an evaluation; made by `of`.

    It holds the detections that a budget can keep, whether they are correct, and counts, but no
    boxes except those of a small sample. Partials of any parts of the images, merged in any order,
    evaluate to the numbers of one run over all of them.
    """

    settings: PartSettings
    part: PartColumns
    form: Form | None
    source: str

    @staticmethod
    def of(
        gt: Annotations,
        detections: DetectionSource,
        *,
        first_row: int = 0,
        positions: ArrayLike | None = None,
        images: ArrayLike | None = None,
        iou: str | None = None,
        protocols: Sequence[str] = PROTOCOLS,
        dets_per_image: int | None = None,
        dets_per_class: int | None = None,
        classes: str | Iterable[int | str] | None = None,
        groups: Mapping[str, Iterable[int | str]] | None = None,
        thresholds: Sequence[float] | None = None,
        budgets: Sequence[Sequence[Budget]] = (),
        like: str | None = None,
        exact_lvis: bool = False,
    ) -> Partial:
        """The contribution of some images.

        gt: the annotations of all images; detections: every detection of these images.
        first_row: the place of the first detection among those of all parts. Among equal scores, a
            budget keeps the earlier detections of the whole.
        positions: the place of each detection instead, rising; 0 everywhere orders detections by
            image id.
        images: ids of the images of this part, if some of them have no detections.

        See `evaluate` for the other arguments, which have to be the same for all parts.
        """
        truth = gt if isinstance(gt, GroundTruth) else read_ground_truth(gt)
        if named_files(detections) is not None:
            detections = read_detections(detections, images=truth)
        if not isinstance(detections, Detections):
            raise InputError(
                f"detections are of type {type(detections).__name__}, expected a table or a path"
            )
        plan = Plan(
            *(protocols, dets_per_image, dets_per_class, classes, groups, budgets, like),
        )
        options = plan.options(MatchOptions(iou, thresholds, exact_lvis))
        place = _positions(detections, first_row, positions)
        return partial_of(truth, detections, plan, options, positions=place, images=images)

    @staticmethod
    def merge(partials: Iterable[Partial]) -> Partial:
        """The contribution of all their images together. They need the same annotations and
        arguments, and no image in common."""
        return merge_partials(list(partials))

    def evaluate(self, gt: Annotations) -> Evaluation:
        """The result of `evaluate` over all annotations and the detections of these images."""
        truth = gt if isinstance(gt, GroundTruth) else read_ground_truth(gt)
        settings, form = self.settings, self.form
        if settings.own_truth:
            raise InputError("this partial belongs to a metric, which has the classes: use compute")
        if facts_of(truth).digest != settings.truth:
            raise InputError(f"{truth.source} is not the ground truth of this partial")
        form = form if form is not None else Form("bbox", False, True)
        if form.mask_digest and mask_digest_of(truth) != form.mask_digest:
            lacks = "was read without masks" if truth.masks is None else "has other masks"
            raise InputError(f"{truth.source} {lacks} than the ground truth of this partial")
        return self._evaluate(truth, form)

    def evaluate_own(self, categories: Categories) -> Evaluation:
        """The same over the objects that the partial carries itself; categories: its classes, and
        any others."""
        form = self.form if self.form is not None else Form("bbox", False, True)
        gt = own_annotations(self.part, categories, federated=self.settings.federated)
        result = self._evaluate(gt, form)
        annotations = int(self.part.objects[:, -1].sum())
        return replace(result, inputs=result.inputs | {"annotations": annotations})

    def to_bytes(self) -> bytes:
        """As bytes, for another process or a file."""
        form = None if self.form is None else vars(self.form)
        header = {"source": self.source, "form": form, "settings": self.settings.to_dict()}
        return to_bytes(header, self.part)

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Partial:
        """The partial whose bytes these are; InputError for any others."""
        known: list[tuple[PartSettings, Form | None, str]] = []

        def thresholds(header: Any) -> int:
            if list(header) != ["source", "form", "settings"]:
                raise ValueError("unexpected header")
            settings = PartSettings.from_dict(header["settings"])
            known.append((settings, _form(header["form"]), _text(header["source"])))
            return len(settings.options.levels)

        _, part = from_bytes(data, thresholds)
        settings, form, source = known[0]
        if bool(len(part)) and form is None:
            raise InputError("the bytes are not a valid partial: its header is damaged")
        return Partial(settings, part, form, source)

    @property
    def image_ids(self) -> NDArray[np.int64]:
        """The images it is of, by ascending id."""
        return self.part.image_ids

    @property
    def total(self) -> int:
        """The number of detections of these images, kept or not."""
        return int(self.part.image_rows.sum())

    @property
    def nbytes(self) -> int:
        """Memory of its columns."""
        return self.part.nbytes

    def __len__(self) -> int:
        return len(self.part)

    def __repr__(self) -> str:
        images = counted(len(self.image_ids), "image")
        return describe_line(self, images, f"{len(self):,} of {self.total:,} detections")

    def without_images(self, gone: NDArray[np.bool_]) -> Partial:
        """Without some of its images ([I])."""
        return replace(self, part=self.part.without_images(gone))

    def _evaluate(self, gt: GroundTruth, form: Form) -> Evaluation:
        settings = self.settings
        options = replace(settings.options, iou=form.iou)
        pair = pair_of(gt, self.part, options, form, self.source)
        if not options.exact_lvis:
            require_known_class(gt, pair.results)
        return evaluate_pair(pair, settings.plan)


def partial_of(
    gt: GroundTruth,
    detections: Detections,
    plan: Plan,
    options: MatchOptions,
    *,
    positions: NDArray[np.int64],
    images: ArrayLike | None = None,
    own_truth: bool = False,
) -> Partial:
    """The partial of detections, for a plan. With own_truth, the annotations are of these images
    alone, and the partial carries what is needed of them."""
    facts = None if own_truth else facts_of(gt)
    digest = class_digest(gt.federated) if facts is None else facts.digest
    settings = PartSettings.of(gt, plan, options, truth=digest, own_truth=own_truth)
    has_masks = detections.masks is not None
    compared = options.resolved(masks=has_masks and gt.masks is not None)
    if not len(detections):  # nothing tells what would have been compared
        compared = replace(compared, iou="bbox")
    assert compared.iou is not None
    present = detections.image_ids[np.unique(detections.image)]
    image_ids = np.sort(present if images is None else encode_ids(images, "images", "images")[0])
    left_out = np.flatnonzero(rows_of(image_ids, present) < 0)
    if len(left_out):
        missing = present[left_out[0]]
        raise InputError(f"{detections.source}: image_id {missing} is not among the images")
    unknown = np.flatnonzero(rows_of(gt.images.ids, image_ids) < 0)
    if len(unknown) and images is not None:
        raise InputError(f"image_id {image_ids[unknown[0]]} is not in {gt.source}")
    part = part_of(
        *(gt, Results.of(detections), compared, plan.selected(gt)),
        position=positions,
        image_ids=image_ids,
        own_truth=own_truth,
    )
    mask_digest = "" if facts is None or compared.iou == "bbox" else mask_digest_of(gt)
    form = Form(compared.iou, has_masks, detections.boxes_given, mask_digest)
    return Partial(
        settings,
        part.needed(_requests(part, settings)),
        form if len(detections) else None,
        detections.source,
    )


def merge_partials(partials: Sequence[Partial], *, drop_repeated: bool = False) -> Partial:
    """The contribution of all images together. With drop_repeated, an image that is in several
    partials counts as in the first of them."""
    if not partials:
        raise InputError("there are no partials to merge")
    for one in partials:
        if not isinstance(one, Partial):
            raise InputError(f"cannot merge a {type(one).__name__}, expected a Partial")
    first, *others = partials
    for other in others:
        first.settings.require_equal(other.settings)
    forms = [one.form for one in partials if one.form is not None]
    for form in forms[1:]:
        _require_equal(forms[0], form)
    parts = _without_repeats(partials) if drop_repeated else partials
    _require_different_images(parts)
    sources = {one.source for one in partials}
    whole = joined([one.part for one in parts])
    part = whole.needed(_requests(whole, first.settings))
    source = first.source if len(sources) == 1 else SEVERAL
    return Partial(first.settings, part, forms[0] if forms else None, source)


def _requests(part: PartColumns, settings: PartSettings) -> list[Request]:
    counting = part.in_budgets.view(np.bool_)
    return requests_of(settings.budgets, None if counting.all() else counting)


def _without_repeats(partials: Sequence[Partial]) -> list[Partial]:
    known = partials[0].image_ids
    found = [partials[0]]
    for one in partials[1:]:
        gone = rows_of(known, one.image_ids) >= 0
        found.append(one.without_images(gone) if gone.any() else one)
        known = np.union1d(known, one.image_ids)
    return found


def _require_different_images(partials: Sequence[Partial]) -> None:
    ids = np.sort(np.concatenate([one.image_ids for one in partials]))
    twice = np.flatnonzero(ids[1:] == ids[:-1])
    if len(twice):
        raise InputError(
            f"cannot merge partials: image_id {ids[twice[0]]} is in more than one of them"
        )


def _require_equal(one: Form, other: Form) -> None:
    for name, value in vars(one).items():
        if name != "mask_digest" and value != getattr(other, name):
            raise InputError(
                f"cannot merge partials of different detections: {name} is {value} in one and "
                f"{getattr(other, name)} in another"
            )
    if one.mask_digest != other.mask_digest:
        raise InputError("cannot merge partials of different ground truth: its masks differ")


def _positions(
    detections: Detections, first_row: int, positions: ArrayLike | None
) -> NDArray[np.int64]:
    """[N] the place of each detection in the whole."""
    if positions is None:
        rows = detections.file_row
        own = np.arange(len(detections)) if rows is None else rows
        return own.astype(np.int64) + first_row
    found = np.asarray(positions)
    if found.shape != (len(detections),) or (found.dtype.kind not in "iu" and len(found)):
        raise InputError(
            f"positions are {found.dtype} with shape {found.shape}, expected integers with shape "
            f"({len(detections)},)"
        )
    found = found.astype(np.int64)
    if (found[1:] < found[:-1]).any():
        raise InputError("positions fall, expected the order of the detections")
    return found


def _form(found: Any) -> Form | None:
    """The form of a header; ValueError for what is none."""
    if found is None:
        return None
    form = Form(**found)
    texts, flags = (form.iou, form.mask_digest), (form.masks, form.boxes_given)
    if not all(isinstance(one, str) for one in texts) or not all(
        isinstance(one, bool) for one in flags
    ):
        raise ValueError("unexpected form")
    MatchOptions(form.iou)
    return form


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise ValueError("unexpected text")
    return found
