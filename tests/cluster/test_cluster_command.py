"""The command on a cluster: in processes of its own, from files and from buckets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lvdet
from cli.run_lvdet import lvdet_command, lvdet_started
from cluster.listening import processes_with
from cluster.shard_files import write_shards
from cluster.test_killed_nodes import alone
from files.object_store import served_elsewhere
from lvdet.cluster.connection import LOOPBACK
from oracles.cases import lvis_case
from tabled import write_case

pytestmark = pytest.mark.long
LOCAL = ["--cluster", "local[2]"]
MARK = "LVDET_TEST_COMMAND"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Annotations, and a folder of shards."""
    annotations, results = lvis_case(11, masks=True)
    gt, shards = tmp_path / "gt.json", tmp_path / "shards"
    gt.write_text(json.dumps(annotations))
    shards.mkdir()
    write_shards(results, shards, 16, seed=11)
    return gt, shards


def test_it_writes_and_prints_the_same(files: tuple[Path, Path], tmp_path: Path) -> None:
    one, many = tmp_path / "one.json", tmp_path / "many.json"
    expected = lvdet_command("evaluate", *files, "-o", one)
    found = lvdet_command("evaluate", *files, "-o", many, *LOCAL, **{MARK: "same"})
    assert found == expected
    assert many.read_bytes() == one.read_bytes()
    assert processes_with(MARK, "same") == []


def test_errors_are_one_line(files: tuple[Path, Path]) -> None:
    gt, shards = files
    (shards / "002a.json").write_text('[{"image_id": 1}]')
    done = lvdet_command("evaluate", gt, shards, *LOCAL)
    done.refused("002a.json, row 0")
    lvdet_command("evaluate", gt, shards, "--cluster", "127.0.0.1:1").refused(
        "cannot connect to the cluster 127.0.0.1:1: Connection refused", code=1
    )


def runs_the_verb(process: int) -> bool:
    """Ray shows what a worker does as its title."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::_coordinate")
    except OSError:
        return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_all_processes(number: signal.Signals, code: int, tmp_path: Path) -> None:
    tables = lvdet.simulate(images=300, classes=50, dets_per_image=300)
    mark = f"ended-{code}"
    gt, dt = write_case(*tables, tmp_path)
    command = ["compare", gt, dt, dt, "--resamples", "10000000", *LOCAL]
    with lvdet_started(*command, env=os.environ | {MARK: mark}) as process:
        while not any(map(runs_the_verb, processes_with(MARK, mark))):
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(60) == code
        end = time.monotonic() + 30
        while processes_with(MARK, mark):
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("scheme", "root"), [("s3", "data/run"), ("gs", "data/run"), ("hf", "datasets/some/run")]
)
def test_shards_in_a_bucket(
    scheme: str, root: str, files: tuple[Path, Path], tmp_path: Path
) -> None:
    """Read by tasks, from a store that fails and breaks off now and then."""
    gt, shards = files
    objects = {f"{root}/shards/{path.name}": path.read_bytes() for path in shards.iterdir()}
    assert len(objects) == 16
    objects[f"{root}/gt.json"] = gt.read_bytes()
    names = [f"{scheme}://{root}/gt.json", f"{scheme}://{root}/shards"]
    one, many = tmp_path / "one.json", tmp_path / "many.json"
    with served_elsewhere(objects, failing=3) as environment:
        expected = lvdet_command("evaluate", *names, "-o", one, **environment).good()
        found = lvdet_command("evaluate", *names, "-o", many, *LOCAL, **environment)
        assert found == expected
        missing = f"{scheme}://{root}/no"
        done = lvdet_command("evaluate", names[0], missing, *LOCAL, **environment)
        done.refused(f"{missing}: no such file")
        if scheme == "s3":
            wrong = environment | {"AWS_SECRET_ACCESS_KEY": "not-the-secret"}
            done = lvdet_command("evaluate", gt, names[1], *LOCAL, **wrong)
            done.refused("access denied (SIGNATURE_DOES_NOT_MATCH)")
            assert "not-the-secret" not in done.err
    assert many.read_bytes() == one.read_bytes()


#: Starts a head and runs the commands that follow on it, in turn.
WITH_HEAD = """
import subprocess, sys, time
ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2",
       "--port=6399", "--ray-client-server-port=9911", "--include-dashboard=false"]
lvdet, gt, shards, folder = sys.argv[1:]
head = subprocess.Popen(ray, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    for number, address in enumerate(["auto", "127.0.0.1:6399", "ray://127.0.0.1:9911"]):
        command = [lvdet, "evaluate", gt, shards, "-o", f"{folder}/{number}.json"]
        for attempt in range(30):
            time.sleep(1)
            done = subprocess.run([*command, "--cluster", address], capture_output=True, text=True)
            if done.returncode == 0 or "cannot connect" not in done.stderr:
                break
        print(done.returncode, done.stderr)
finally:
    head.terminate()
    head.wait()
"""


def test_a_cluster_that_runs(files: tuple[Path, Path], tmp_path: Path) -> None:
    if not alone():
        pytest.skip("needs a network of its own: the ports may be taken")
    lvdet_program = Path(sys.executable).with_name("lvdet")
    expected = tmp_path / "expected.json"
    lvdet_command("evaluate", *files, "-o", expected)
    program = [sys.executable, "-c", WITH_HEAD, lvdet_program, *files, tmp_path]
    done = subprocess.run(
        [*alone(), *map(str, program)],
        env=os.environ | LOOPBACK | {"RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.count("0 ") >= 3, (done.stdout, done.stderr)
    for number in range(3):
        assert (tmp_path / f"{number}.json").read_bytes() == expected.read_bytes()
