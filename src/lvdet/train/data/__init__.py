"""Annotation files and folders of images to batches."""

from lvdet.train.data.annotations import read_dataset
from lvdet.train.data.dataset import Dataset
from lvdet.train.data.loader import Loader
from lvdet.train.data.prediction import PredictionBatch, prediction_batches

__all__ = ["Dataset", "Loader", "PredictionBatch", "prediction_batches", "read_dataset"]
