"""A torchmetrics metric in bounded memory, and lvdet's engine in torchmetrics' own.

    from lvdet.integrations.torchmetrics import MeanAveragePrecision

has the arguments and fields of torchmetrics' class, and AP-Fixed and AP-Pool beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

try:
    import torch
    from torch import Tensor
    from torchmetrics import Metric
    from torchmetrics.detection.helpers import CocoBackend
    from torchmetrics.utilities.distributed import gather_all_tensors
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"lvdet.integrations.torchmetrics needs {error.name}: pip install 'torchmetrics>=1.8'",
        name=error.name,
    ) from None

import numpy as np

from lvdet.errors import InputError
from lvdet.evaluation.evaluation_result import Evaluation, ProtocolResult
from lvdet.evaluation.load_pair import Annotations
from lvdet.evaluation.protocols import LVIS_PER_IMAGE
from lvdet.files.annotation_files import read_ground_truth
from lvdet.integrations import pycocotools
from lvdet.limits.budgets import PerImageClass, describe
from lvdet.partials.detection_metric import DetectionMetric
from lvdet.tables.categories import FREQUENCY_NAMES, Categories
from lvdet.tables.ground_truth import GroundTruth

__all__ = ["Backend", "MeanAveragePrecision", "use_lvdet"]

#: torchmetrics' word for what is undefined.
UNDEFINED = -1.0
_IOU_TYPES = ("bbox", "segm")
#: The names of metrics in torchmetrics, after the prefix.
_PRECISIONS = {
    "map": "AP",
    "map_50": "AP50",
    "map_75": "AP75",
    "map_small": "APs",
    "map_medium": "APm",
    "map_large": "APl",
}
_RECALLS = {"mar_small": "ARs", "mar_medium": "ARm", "mar_large": "ARl"}


class MeanAveragePrecision(Metric):
    """AP as torchmetrics' class of the same name computes it, and AP-Fixed and AP-Pool.

    box_format, iou_type, iou_thresholds, max_detection_thresholds, class_metrics: as there.
    gt: the annotations of all images, a table or a path; targets then need only an image_id. LVIS
        annotations are evaluated as LVIS does: `map` is AP-Old, with 300 detections per image.
    categories, federated: the classes, and whether targets have LVIS's lists, if there is no gt.
    dets_per_class: budget of AP-Fixed and AP-Pool, instead of 10,000.
    classes, groups: as of `lvdet.evaluate`.

    Each target (or prediction) needs an `image_id`. Processes exchange bytes whose size is bounded
    by the budgets. An image that several of them saw counts once.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0
    #: The full results of the last `compute`, by IoU type.
    evaluations: dict[str, Evaluation]

    def __init__(
        self,
        box_format: str = "xyxy",
        iou_type: str | Sequence[str] = "bbox",
        iou_thresholds: Sequence[float] | None = None,
        rec_thresholds: None = None,
        max_detection_thresholds: Sequence[int] | None = None,
        class_metrics: bool = False,
        extended_summary: bool = False,
        average: str = "macro",
        *,
        gt: Annotations | None = None,
        categories: Categories | Mapping[int, str] | None = None,
        federated: bool = False,
        dets_per_class: int | None = None,
        classes: str | Iterable[int | str] | None = None,
        groups: Mapping[str, Iterable[int | str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if rec_thresholds is not None or extended_summary or average != "macro":
            raise InputError(
                "rec_thresholds, extended_summary and average='micro' are not supported: use "
                "torchmetrics' own class with lvdet.integrations.torchmetrics.use_lvdet"
            )
        types = (iou_type,) if isinstance(iou_type, str) else tuple(iou_type)
        if not types or not set(types) <= set(_IOU_TYPES) or len(set(types)) < len(types):
            raise InputError(f"iou_type is {iou_type!r}, expected 'bbox', 'segm' or both")
        limits = [1, 10, 100] if max_detection_thresholds is None else max_detection_thresholds
        self.max_detection_thresholds = sorted(limits)
        self.class_metrics = class_metrics
        chosen = list(classes) if classes is not None and not isinstance(classes, str) else classes
        truth = gt if gt is None or isinstance(gt, GroundTruth) else read_ground_truth(gt)
        lvis = federated if truth is None else truth.federated
        budgets = [] if lvis else [(PerImageClass(one),) for one in self.max_detection_thresholds]
        self._metrics = {
            one: DetectionMetric(
                truth,
                iou=one,
                box_format=box_format,
                categories=categories,
                federated=federated,
                protocols=("old", "fixed", "pool") if lvis else ("fixed", "pool"),
                dets_per_class=dets_per_class,
                classes=chosen,
                groups=groups,
                thresholds=iou_thresholds,
                budgets=budgets,
            )
            for one in types
        }
        self._gathered: dict[str, DetectionMetric] | None = None
        self.evaluations = {}

    def update(
        self, preds: Sequence[Mapping[str, Any]], target: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Adds images: see `lvdet.DetectionMetric.update`."""
        for metric in self._metrics.values():
            metric.update(preds, target)

    def compute(self) -> dict[str, Tensor]:
        """The fields of torchmetrics, and of AP-Fixed and AP-Pool: scalars, so that Lightning's
        `log_dict` takes them. With class_metrics, also vectors over the classes."""
        metrics = self._metrics if self._gathered is None else self._gathered
        found: dict[str, Any] = {}
        self.evaluations = {name: metric.compute() for name, metric in metrics.items()}
        for name, result in self.evaluations.items():
            prefix = "" if len(metrics) == 1 else f"{name}_"
            found |= {f"{prefix}{key}": value for key, value in self._fields(result).items()}
        first = next(iter(metrics.values()))
        found |= {"images": len(first), "repeated_images": first.repeated}
        if self.class_metrics:
            found["classes"] = next(iter(self.evaluations.values())).per_class["id"]
        return {name: self._tensor(value) for name, value in found.items()}

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Adds images, and returns the numbers of these images in this process alone."""
        self.update(*args, **kwargs)
        whole, count = self._metrics, self._update_count
        self._metrics = {name: metric.emptied() for name, metric in whole.items()}
        to_sync, self._to_sync = self._to_sync, False
        try:
            self.update(*args, **kwargs)
            values: dict[str, Tensor] = self.compute()
        finally:
            self._metrics, self._update_count, self._to_sync = whole, count, to_sync
            self._computed = None
        return values

    def reset(self) -> None:
        """Forgets all images."""
        super().reset()
        self._gathered = None
        for metric in self._metrics.values():
            metric.reset()

    def unsync(self, should_unsync: bool = True) -> None:
        """Returns to the images of this process."""
        super().unsync(should_unsync)
        if should_unsync:
            self._gathered = None

    def merge_state(self, incoming_state: Any) -> None:
        """Adds the images of another metric with the same arguments."""
        if not isinstance(incoming_state, MeanAveragePrecision):
            raise InputError(
                f"state is of type {type(incoming_state).__name__}, expected a MeanAveragePrecision"
            )
        self._computed = None
        self._update_count += incoming_state.update_count
        for name, metric in self._metrics.items():
            metric.merge([incoming_state._metrics[name].partial()])

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draws the numbers, as other metrics do."""
        return self._plot(val, ax)

    def _sync_dist(
        self,
        dist_sync_fn: Callable[..., list[Tensor]] = gather_all_tensors,
        process_group: Any | None = None,
    ) -> None:
        """Gathers the bytes of all processes, and merges them in the order of their ranks."""
        group = process_group or self.process_group
        gathered = {}
        for name, metric in self._metrics.items():
            state = torch.frombuffer(bytearray(metric.to_bytes()), dtype=torch.uint8)
            repeated = torch.tensor([metric.repeated], dtype=torch.int64)
            states = dist_sync_fn(state.to(self.device), group=group)
            counts = dist_sync_fn(repeated.to(self.device), group=group)
            whole = metric.emptied()
            whole.merge(
                [one.cpu().numpy().tobytes() for one in states],
                repeated=sum(int(one.item()) for one in counts),
            )
            gathered[name] = whole
        self._gathered = gathered

    def _fields(self, result: Evaluation) -> dict[str, Any]:
        """The numbers of one IoU type by name."""
        limits = self.max_detection_thresholds
        lvis = "old" in result
        largest = LVIS_PER_IMAGE if lvis else limits[-1]
        main = result["old"] if lvis else result[_budget(largest)]
        found: dict[str, Any] = dict(_named(main, _PRECISIONS))
        recalls = {largest: main} if lvis else {one: result[_budget(one)] for one in limits}
        found |= {f"mar_{limit}": one["AR"] for limit, one in recalls.items()}
        found |= _named(main, _RECALLS)
        fixed, pool = result["fixed"], result["pool"]
        groups = {f"AP{letter}": FREQUENCY_NAMES[letter] for letter in result.categories.groups()}
        groups |= {key: key[3:] for key in fixed if key.startswith("AP_")}
        for prefix, one in (("", main), ("fixed_", fixed), ("pool_", pool)):
            found |= {f"{prefix}map_{name}": one[key] for key, name in groups.items()}
        found |= {f"fixed_{key}": value for key, value in _named(fixed, _PRECISIONS).items()}
        found["fixed_mar"] = fixed["AR"]
        found |= {f"pool_{key}": value for key, value in _named(pool, _PRECISIONS).items()}
        per_class = result.per_class
        for key, column in (("map", "AP"), (f"mar_{largest}", "AR")):
            values = per_class[f"{main.name}.{column}"]
            found[f"{key}_per_class"] = values if self.class_metrics else UNDEFINED
        return found

    def _tensor(self, value: Any) -> Tensor:
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), UNDEFINED, array).astype(np.float32)
        elif array.ndim:
            array = array.astype(np.int32)
        return torch.from_numpy(np.array(array)).to(self.device)


class Backend(CocoBackend):
    """The tools that torchmetrics' MeanAveragePrecision and its subclasses use: lvdet's drop-ins
    for pycocotools."""

    def __init__(self) -> None:
        super().__init__("pycocotools")

    @property
    def coco(self) -> object:
        """The class of datasets."""
        return pycocotools.COCO

    @property
    def cocoeval(self) -> object:
        """The class that evaluates."""
        return pycocotools.COCOeval

    @property
    def mask_utils(self) -> object:
        """The functions on masks."""
        return pycocotools.mask


def use_lvdet(metric: Any) -> Any:
    """Makes torchmetrics' MeanAveragePrecision, or a subclass, compute with lvdet; returns the same
    metric."""
    if not isinstance(getattr(metric, "_coco_backend", None), CocoBackend):
        raise InputError(
            f"{type(metric).__name__} has no COCO backend, expected torchmetrics' "
            "MeanAveragePrecision or a subclass"
        )
    metric._coco_backend = Backend()
    return metric


def _budget(limit: int) -> str:
    return describe([PerImageClass(limit)])


def _named(result: ProtocolResult, names: Mapping[str, str]) -> dict[str, float]:
    """Metrics under torchmetrics' names, as far as the result has them."""
    return {name: result[key] for name, key in names.items() if key in result}
