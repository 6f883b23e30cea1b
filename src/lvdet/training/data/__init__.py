"""From annotation files and image folders to batches."""

from lvdet.training.data.dataset import Dataset
from lvdet.training.data.loader import Loader
from lvdet.training.data.prediction import PredictionBatch, prediction_batches
from lvdet.training.data.training_annotations import read_dataset

__all__ = ["Dataset", "Loader", "PredictionBatch", "prediction_batches", "read_dataset"]
