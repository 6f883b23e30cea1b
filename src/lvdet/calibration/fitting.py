"""One map per class, fitted on its own detections, its frequency group's, or all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.calibration.hierarchical import fit_hierarchical
from lvdet.calibration.labelled_scores import Samples
from lvdet.calibration.maps import KEEP, Floats, Map, constant
from lvdet.calibration.methods import FITS, fit_groups
from lvdet.calibration.order import calibrated
from lvdet.errors import InputError
from lvdet.files.progress import Update
from lvdet.tables.categories import FREQUENCIES, Categories
from lvdet.threads import thread_count

HIERARCHICAL, IDENTITY = "hierarchical", "identity"
METHODS = (*FITS, HIERARCHICAL)
GROUPINGS = ("class", "frequency", "all")
#: What a class gets of which nothing right was seen: 0 as in the paper, its own scores, or the fit
#: of its frequency group.
MISSING = ("zero", "keep", "frequency")


@dataclass(frozen=True)
class Recipe:
    """How calibration is fitted.

    method:   one of METHODS
    grouping: which detections a map is fitted on: one of GROUPINGS
    missing:  how classes (or groups) without a correct detection are treated: one of MISSING; ""
              for `hierarchical`, which covers every class
    """

    method: str
    grouping: str
    missing: str

    @staticmethod
    def of(method: str, grouping: str = "class", missing: str | None = None) -> Recipe:
        """A valid recipe; raises for invalid ones."""
        _require("method", method, METHODS)
        _require("grouping", grouping, GROUPINGS)
        if missing is not None:
            _require("missing", missing, MISSING)
        if method != HIERARCHICAL:
            return Recipe(method, grouping, missing or ("keep" if method == IDENTITY else "zero"))
        if grouping != "class" or missing is not None:
            raise InputError(
                "hierarchical calibration covers every class: choose another method to set "
                "grouping or missing"
            )
        return Recipe(method, grouping, "")


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of a fit: the maps, and [C] int64 the map of each class."""

    maps: tuple[Map, ...]
    of_class: NDArray[np.int64]

    def new_scores(self, category: NDArray[np.int32], score: Floats) -> Floats:
        """[N] calibrated scores of detections of classes ([N], rows of the categories)."""
        groups = len(self.of_class)
        if (category[1:] >= category[:-1]).all():  # in the order of the classes already
            offsets = np.searchsorted(category, np.arange(groups + 1, dtype=category.dtype))
            order, ranked = None, score
        else:
            order, offsets = _native.rank_groups(category, groups, score, thread_count())
            ranked = score[order]
        new = np.empty(len(score))
        for row in np.flatnonzero(np.diff(offsets)).tolist():
            rows = slice(offsets[row], offsets[row + 1])
            found = calibrated(self.maps[self.of_class[row]], ranked[rows])
            new[rows if order is None else order[rows]] = found
        return new


def fit_classes(
    samples: Samples,
    recipe: Recipe,
    *,
    update: Update | None = None,
) -> Fitted:
    """Fits the map of every class."""
    if not len(samples.categories):
        return Fitted((), np.zeros(0, dtype=np.int64))
    if recipe.method == HIERARCHICAL:
        own = fit_hierarchical(samples, update=update)
        return Fitted(tuple(own), np.arange(len(own)))
    group = _groups(samples.categories, recipe.grouping)
    count = int(group.max(initial=-1)) + 1
    grouped = samples if recipe.grouping == "class" else samples.grouped(group, count)
    found = fit_groups(grouped, recipe.method, update=update)
    missing = [place for place, score_map in enumerate(found) if score_map is None]
    if missing and recipe.missing == "frequency":
        wider = _wider(samples, recipe)
        first = np.unique(group, return_index=True)[1]
        for place in missing:
            found[place] = wider[first[place]]
    other = KEEP if recipe.missing == "keep" else constant(0.0)
    maps = tuple(other if score_map is None else score_map for score_map in found)
    return Fitted(maps, group.astype(np.int64))


def _wider(samples: Samples, recipe: Recipe) -> list[Map | None]:
    """[C] the fit of each class's frequency group, or of all classes if it has none."""
    every = samples.grouped(np.zeros(len(samples.categories), dtype=np.int32), 1)
    (whole,) = fit_groups(every, recipe.method)
    group = samples.categories.group_numbers()
    grouped = samples.grouped(group, int(group.max(initial=-1)) + 1)
    found = fit_groups(grouped, recipe.method)
    return [whole if found[place] is None else found[place] for place in group]


def _groups(categories: Categories, grouping: str) -> NDArray[np.int32]:
    """[C] the fit that each class takes part in."""
    if grouping == "class":
        return np.arange(len(categories), dtype=np.int32)
    if grouping == "all":
        return np.zeros(len(categories), dtype=np.int32)
    if not np.isin(categories.frequency, FREQUENCIES).any():
        raise InputError(
            "grouping is by frequency, but the categories in the annotations have no 'frequency'"
        )
    return categories.group_numbers()


def _require(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name} is {value!r:.60}, expected one of {', '.join(known)}")
