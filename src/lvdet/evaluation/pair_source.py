"""Results that are not in one place, and make a pair themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from lvdet.evaluation.pair import Pair
from lvdet.files.progress import Progress
from lvdet.files.remote_path import InputPath
from lvdet.limits.needs import Need
from lvdet.matching.match_options import MatchOptions
from lvdet.tables.ground_truth import GroundTruth


class PairSource(ABC):
    """What `load_pair` takes in place of a table or files."""

    #: Its name in messages.
    name: str

    @abstractmethod
    def pair(
        self,
        gt: GroundTruth | InputPath,
        needs: Callable[[GroundTruth], Sequence[Need]],
        options: MatchOptions,
        progress: Progress | None,
    ) -> Pair:
        """The pair, with every row that the needs can use. Its rows are matched, and have no boxes
        any more."""
