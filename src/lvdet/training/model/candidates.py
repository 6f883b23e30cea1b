"""A detector's raw output for images, before suppression."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lvdet.training.model.boxes import Weights, clip, decode


@dataclass(frozen=True)
class Candidates:
    """R boxes in each of B images, with a score for each of K classes.

    score:   [B, R, K] float32; -inf if there is no box
    box:     [B, R, 4] the boxes of all classes or, if there are codes, the boxes that those move
    size:    [B, 2] height and width of each image
    code:    [B, R, K, 4] from a box to that of each class, with their weights, or None

    A candidate is one of the B * R * K scores. Boxes of classes are computed only where they are
    requested: few of them ever are.
    """

    score: Tensor
    box: Tensor
    size: Tensor
    code: Tensor | None
    weights: Weights

    def boxes(self, place: Tensor) -> Tensor:
        """[N, 4] the boxes of candidates, by [N] their places among all scores."""
        rows, classes = self.score.shape[1:]
        box = self.box.flatten(0, 1)[place // classes]
        if self.code is None:
            return box
        moved = decode(self.code.flatten(0, 2)[place].float(), box, self.weights)
        return clip(moved, self.size[place // (rows * classes)])

    def of(self, images: Tensor) -> Candidates:
        """The candidates of some images."""
        code = None if self.code is None else self.code[images]
        return Candidates(
            self.score[images], self.box[images], self.size[images], code, self.weights
        )
