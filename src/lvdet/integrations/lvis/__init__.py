"""lvis's classes on lvdet's engine: the same names, numbers and text."""

from lvdet.integrations.lvis.eval import LVISEval
from lvdet.integrations.lvis.lvis import LVIS
from lvdet.integrations.lvis.results import LVISResults
from lvdet.integrations.lvis.vis import LVISVis

__all__ = ["LVIS", "LVISEval", "LVISResults", "LVISVis"]
