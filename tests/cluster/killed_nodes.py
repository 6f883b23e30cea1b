"""A cluster of several nodes, one of which is killed now and then, and `evaluate` on it.

    python -m cluster.killed_nodes GT SHARDS SEED KILLS CPUS_OF_HEAD

Exits with 0 if the result is that of one process, byte for byte, and says how many nodes died
meanwhile.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time

from lvdet.cluster.connection import LOOPBACK, connected

os.environ.update(LOOPBACK)
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster

import lvdet
from lvdet.cluster.run_on import run_on
from lvdet.cluster.shards import Shards
from partitions import written


def main(gt: str, shards: str, seed: int, kills: int, cpus_of_head: int) -> int:
    expected = written(lvdet.evaluate(gt, shards))
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": cpus_of_head, "include_dashboard": False},
    )
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    rng, over = random.Random(seed), threading.Event()
    found: list[str] = []

    def evaluate_again_and_again() -> None:
        while not over.is_set():  # so that nodes die at all moments of a run
            result = run_on(lvdet.evaluate, gt, Shards.of(shards))
            found.append(written(result))

    with connected(cluster.address):
        runs = threading.Thread(target=evaluate_again_and_again)
        runs.start()
        for _ in range(kills):
            time.sleep(rng.uniform(0.1, 2))
            victim = nodes.pop(rng.randrange(len(nodes)))
            victim.all_processes["raylet"][0].process.kill()
            nodes.append(cluster.add_node(num_cpus=1))
        over.set()
        runs.join()
    cluster.shutdown()
    print(f"{kills} nodes died during {len(found)} runs")
    different = [text for text in found if text != expected]
    print(*different[:1], sep="\n")
    return 1 if different or not found else 0


if __name__ == "__main__":
    gt, shards, *numbers = sys.argv[1:]
    sys.exit(main(gt, shards, *map(int, numbers)))
