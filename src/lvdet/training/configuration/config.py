"""The config of a training run. The defaults are the paper's."""

from __future__ import annotations

from dataclasses import dataclass, field

#: The losses that are taken over groups of images.
GROUPED = ("federated", "balanced_groups")


@dataclass(frozen=True)
class Data:
    """Annotation files in LVIS or COCO format, and the folders with their images. Paths are
    relative to the config file's folder. Without `val`, nothing is evaluated during training.

    Paths are relative to the config file's folder. Without `val` nothing is evaluated while it
    trains.
    """

    train: str = ""
    train_images: str = ""
    val: str = ""
    val_images: str = ""


@dataclass(frozen=True)
class Input:
    """How images are resized and flipped.

    by:       "shortest" side, or "longest", which is brought to a random one of `sizes`; of two
              sizes with `between`, to any whole number between them
    largest:  pixels of the longest side at most, for "shortest"
    test_by, test_size: the side and the size for prediction; "": as in training; 0: the largest of
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
    weights:  "imagenet", "none", or a file of weights to begin with
    norm:     "frozen", "batch" or "group"; "" is frozen with weights and batch without
    stride_in: the convolution of a bottleneck with the stride, "1x1" or "3x3"; "" is what the
              weights were trained with, and "3x3" where they do not say
    anchors:  sides of the anchors of the five levels, in pixels of the resized image
    masks:    whether there is a mask head
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
    objectness:  a parallel predictor of objectness ("Obj")
    normalized:  features and weights of length 1 ("Norm")
    temperature: of the normalised layer; 0: the paper's, 20 for softmax and balanced_groups, 50
                 for the others
    rarer_than:  equalization: classes in a smaller fraction (λ) of the annotated training images
                 are spared
    sampled_classes: federated: |S|
    others_ratio: balanced_groups: β
    group_images: federated and balanced_groups: images that such a loss is taken over together; 2,
                 as on each of 8 GPUs with 16 images per step
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
    """How often each image is seen: "repeat_factor", "uniform" or "class_aware"."""

    name: str = "repeat_factor"
    threshold: float = 1e-3


@dataclass(frozen=True)
class Schedule:
    """The length of training and its learning rates.

    batch:        images per step, across all processes
    milestones:   steps after which the rate is multiplied by `decay`
    warmup_factor, warmup_steps: what of the rate the first step has, and steps until the full rate;
                  -1: the paper's, 1e-4 and 10,000 for sigmoid, 1e-3 and 1,000 for the others, but a
                  tenth of all steps at most
    warmup_rate:  the rate at the first step, in place of a factor; -1: by the factor
    clip:         largest norm of the gradient; 0: none
    accumulate:   parts in which a process takes its images of a step, one after the other, for less
                  memory; losses are those of the whole
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
    """Classifier retraining: if `checkpoint` is given, training starts from its weights, the
    classifier is initialised anew, and nothing else is trained."""

    checkpoint: str = ""


@dataclass(frozen=True)
class Run:
    """The process and its files.

    checkpoint_every, evaluate_every, log_every: steps; 0: only at the end (no log: never)
    keep:    checkpoints that are kept, and predictions of evaluations
    workers: processes that load images, for each that trains; -1: one per core, which those that
             train on a machine share, up to 8
    tensorboard: whether the numbers of the log are scalars for TensorBoard too
    precision: "bf16" or "fp32"; "": bf16 on a GPU that has it, else fp32
    cuda_graphs: whether one GPU records steps for images of sizes that come again and again
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
