"""Nodes that die change nothing but the time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import lvdet
from cluster.shard_files import write_shards
from tabled import write_case

TESTS = Path(__file__).resolve().parents[1]
#: A network of its own, with loopback alone, where that is allowed.
ALONE = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def alone() -> list[str]:
    try:
        done = subprocess.run([*ALONE, "true"], capture_output=True)
    except OSError:
        return []
    return ALONE if done.returncode == 0 else []


@pytest.mark.long
@pytest.mark.parametrize(("seed", "cpus_of_head"), [(1, 1), (2, 0), (3, 1)])
def test_killed_nodes_change_nothing(seed: int, cpus_of_head: int, tmp_path: Path) -> None:
    """Without a CPU on the head, the verb itself runs on a node that may die."""
    tables = lvdet.simulate(images=400, classes=60, dets_per_image=300, seed=seed)
    gt, dt = write_case(*tables, tmp_path)
    shards = tmp_path / "shards"
    shards.mkdir()
    write_shards(json.loads(dt.read_text()), shards, 30, seed)
    command = [sys.executable, "-m", "cluster.killed_nodes", gt, str(shards / "*")]
    numbers = [str(seed), "5", str(cpus_of_head)]
    done = subprocess.run(
        [*alone(), *map(str, command), *numbers], cwd=TESTS, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout[-3000:], done.stderr[-3000:])
    assert "5 nodes died" in done.stdout
