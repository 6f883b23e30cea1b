"""Two processes with a gloo group on this machine, against one; prints the images they counted.

One import for both: the second is forked before there is any thread.
"""

from __future__ import annotations

import json
import os
import socket
import sys

import torch
import torch.distributed as dist
from torch_images import random_images

from lvdet.integrations.torchmetrics import MeanAveragePrecision

#: The images of each process.
SHARDS = {
    "unequal": (range(9), range(9, 12)),
    "doubled": (range(7), range(6, 12)),
    "empty": (range(12), range(0)),
}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def run(rank: int, port: int) -> dict[str, int]:
    """Compares in each process, so that both would notice."""
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    predictions, targets = random_images(9)
    whole = MeanAveragePrecision(sync_on_compute=False)
    whole.update(predictions, targets)
    expected, counted = whole.compute(), {}
    for name, shards in SHARDS.items():
        metric = MeanAveragePrecision()
        for image in shards[rank]:
            metric.update(predictions[image : image + 1], targets[image : image + 1])
        metric._update_count = 1  # a process without images is not worth a warning here
        found = metric.compute()
        assert found.pop("repeated_images") == (name == "doubled"), name
        for key, value in found.items():
            assert torch.equal(value, expected[key]), (name, key)
        # And what was exchanged is gone: the metric goes on with its own images.
        own = len(metric._metrics["bbox"])
        assert own == len(shards[rank]), name
        counted[name] = int(found["images"])
    dist.destroy_process_group()
    return counted


if __name__ == "__main__":
    port = free_port()
    child = os.fork()
    found = run(0 if child else 1, port)
    if not child:
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(json.dumps(found))
    sys.exit(0 if status == 0 else 1)
