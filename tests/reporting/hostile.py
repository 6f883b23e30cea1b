"""A set of LVIS's size in classes, two detectors, and names that would like to be code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import lvdet
from lvdet.simulation.simulate import simulate
from lvdet.tables.ground_truth import GroundTruth

#: Names that do harm wherever they are taken for HTML, for script, for a template or for Plotly's.
NAMES = (
    "<img src=x onerror=alert(1)>",
    "</script><script>window.harmed = 1</script>",
    "\"><svg onload='window.harmed = 1'>",
    "{{ 7 * 7 }} {% raise %}",
    '<a href="javascript:window.harmed=1">link</a>',
    "%{customdata}<extra>$\\alpha$</extra>",
    "&lt;b&gt; constructor __proto__",
    "",
)
#: Nothing in it where a line could be broken.
LONG_NAME = f"second_{'and_on_' * 18}end.json"
FILE_NAME = "qu'ote\" <img src=x onerror=alert(2)> results.json"


@dataclass(frozen=True)
class HostileSet:
    """Files of annotations, and of results of two detectors."""

    annotations: Path
    results: list[Path]
    gt: GroundTruth


def hostile_set(
    folder: Path, classes: int = 1203, candidates: int = 300, *, masks: bool = False
) -> HostileSet:
    """Writes the set into a folder; one of its files is named through `../`."""
    gt, dt = simulate(
        *(80, classes),
        dets_per_image=None,
        candidates_per_image=candidates,
        bias=1.0,
        masks=masks,
        seed=3,
    )
    # The names go to the classes that figures name: those with most objects and detections.
    order = np.argsort(-np.bincount(gt.category, minlength=len(gt.categories)), kind="stable")
    names = list(gt.categories.names)
    for row, name in zip(order, NAMES, strict=False):
        names[row] = name
    gt = replace(gt, categories=replace(gt.categories, names=tuple(names)))
    (folder / "inside").mkdir()
    paths = [folder / "inside" / ".." / FILE_NAME, folder / LONG_NAME]
    lvdet.write_ground_truth(gt, folder / "gt.json")
    lvdet.write_detections(dt, paths[0])
    rng = np.random.default_rng(0)
    other = np.clip(dt.score + rng.normal(0, 0.1, len(dt)), 0, 1)
    lvdet.write_detections(dt.with_scores(other)[: len(dt) // 2], paths[1])
    return HostileSet(folder / "gt.json", paths, gt)
