"""The same evaluations over the shards of a results file, on a Ray cluster; and prediction there.

with connected("local[8]"):
    result = run_on(lvdet.evaluate, "gt.json", Shards.of("shards/*.parquet"))
"""

from lvdet.cluster.connection import connected
from lvdet.cluster.image_prediction import predict
from lvdet.cluster.run_on import run_on
from lvdet.cluster.shards import Shards

__all__ = ["Shards", "connected", "predict", "run_on"]
