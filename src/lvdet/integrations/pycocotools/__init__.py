"""pycocotools's classes on lvdet's engine: the same names, numbers and text."""

from lvdet.integrations.pycocotools import mask
from lvdet.integrations.pycocotools.coco import COCO
from lvdet.integrations.pycocotools.cocoeval import COCOeval, Params

__all__ = ["COCO", "COCOeval", "Params", "mask"]
