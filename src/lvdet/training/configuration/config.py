"""The config of a training run. The defaults are the paper's."""

from __future__ import annotations

from dataclasses import dataclass, field

#: The losses that are computed over groups of images.
GROUPED = ("federated", "balanced_groups")


@dataclass(frozen=True)
class Data:
    """Annotation files in LVIS or COCO format, and the folders with their images. Paths are
    relative to the config file's folder. Without `val`, nothing is evaluated during training."""

    train: str = ""
    train_images: str = ""
    val: str = ""
    val_images: str = ""


@dataclass(frozen=True)
class Input:
    """How images are resized and flipped.

    by:       the side to resize, "shortest" or "longest", to a random one of `sizes`; with
              `between`, to any integer between the two sizes
    largest:  largest longest side in pixels, for "shortest"
    test_by, test_size: the side and its size in prediction; "": as in training; 0: the largest of
              `sizes`
    flip:     the probability of a horizontal flip
    """

    by: str = "shortest"
    sizes: tuple[int, ...] = (640, 672, 704, 736, 768, 800)
    between: bool = False
    largest: int = 1333
    test_by: str = ""
    test_size: int = 0
    flip: float = 0.5


@dataclass(frozen=True)
class Model:
    """The network.

    kind:     "mask_rcnn" or "cascade_rcnn"
    backbone: "resnet50", "resnet101", "resnext101_32x8d", "regnet_y_4gf", "resnet18" or "tiny"
    weights:  "imagenet", "none", or a file of initial weights
    norm:     "frozen", "batch" or "group"; "": frozen with weights, batch without
    stride_in: the convolution of a bottleneck that has the stride, "1x1" or "3x3"; "": as the
              weights were trained, or "3x3" if they do not say
    anchors:  sides of the anchors of the five levels, in pixels of the resized image
    masks:    whether to add a mask head
    """

    kind: str = "mask_rcnn"
    backbone: str = "resnet50"
    weights: str = "imagenet"
    norm: str = ""
    stride_in: str = ""
    anchors: tuple[int, ...] = (32, 64, 128, 256, 512)
    masks: bool = True

    @property
    def chosen_norm(self) -> str:
        """`norm`, with "" resolved."""
        return self.norm or ("batch" if self.weights == "none" else "frozen")


@dataclass(frozen=True)
class Classifier:
    """The classifier of the boxes and its loss.

    loss:        "softmax", "sigmoid", "equalization", "federated" or "balanced_groups"
    objectness:  adds a parallel objectness predictor ("Obj")
    normalized:  features and weights of length 1 ("Norm")
    temperature: of the normalised layer; 0: the paper's, 20 for softmax and balanced_groups, 50
                 for the others
    rarer_than:  equalization: spares classes in a smaller fraction (λ) of the annotated training
                 images
    sampled_classes: federated: |S|
    others_ratio: balanced_groups: β
    group_images: federated and balanced_groups: the number of images over which the loss is
                 computed together; 2, as on each of 8 GPUs with 16 images per step
    """

    loss: str = "softmax"
    objectness: bool = False
    normalized: bool = False
    temperature: float = 0.0
    rarer_than: float = 1e-3
    sampled_classes: int = 50
    others_ratio: float = 16.0
    group_images: int = 2


@dataclass(frozen=True)
class Sampler:
    """How often each image is used: "repeat_factor", "uniform" or "class_aware"."""

    name: str = "repeat_factor"
    threshold: float = 1e-3


@dataclass(frozen=True)
class Schedule:
    """The length of training and its learning rates.

    batch:        images per step, across all processes
    milestones:   steps after which the rate is multiplied by `decay`
    warmup_factor, warmup_steps: the fraction of the rate at the first step, and the steps until the
                  full rate; -1: the paper's, 1e-4 and 10,000 for sigmoid, 1e-3 and 1,000 for the
                  others, but at most a tenth of all steps
    warmup_rate:  the rate at the first step, instead of a factor; -1: use the factor
    clip:         largest norm of the gradient; 0: no clipping
    accumulate:   parts into which a process splits its images of a step, to save memory; losses
                  are the same as without splitting
    """

    steps: int = 180_000
    batch: int = 16
    rate: float = 0.02
    milestones: tuple[int, ...] = (120_000, 160_000)
    decay: float = 0.1
    warmup_factor: float = -1.0
    warmup_rate: float = -1.0
    warmup_steps: int = -1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    clip: float = 0.0
    accumulate: int = 1


@dataclass(frozen=True)
class Retrain:
    """Classifier retraining: with `checkpoint`, training starts from its weights, the classifier is
    initialised anew, and nothing else is trained."""

    checkpoint: str = ""


@dataclass(frozen=True)
class Run:
    """The process and its files.

    checkpoint_every, evaluate_every, log_every: steps; 0: only at the end (no log: never)
    keep:    the number of checkpoints, and of evaluations' predictions, to keep
    workers: processes that load images, per training process; -1: one per core, divided among the
             training processes of a machine, up to 8
    tensorboard: whether to write the log's numbers as TensorBoard scalars too
    precision: "bf16" or "fp32"; "": bf16 if the GPU supports it, otherwise fp32
    cuda_graphs: whether a single GPU records CUDA graphs of steps whose image sizes recur
    """

    seed: int = 0
    workers: int = -1
    precision: str = ""
    channels_last: bool = True
    cuda_graphs: bool = True
    log_every: int = 20
    tensorboard: bool = False
    checkpoint_every: int = 5_000
    evaluate_every: int = 0
    keep: int = 2


@dataclass(frozen=True)
class Config:
    """A complete run; the sections of a config file."""

    data: Data = field(default_factory=Data)
    input: Input = field(default_factory=Input)
    model: Model = field(default_factory=Model)
    classifier: Classifier = field(default_factory=Classifier)
    sampler: Sampler = field(default_factory=Sampler)
    schedule: Schedule = field(default_factory=Schedule)
    retrain: Retrain = field(default_factory=Retrain)
    run: Run = field(default_factory=Run)
