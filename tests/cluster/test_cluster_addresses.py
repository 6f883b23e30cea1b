"""Where clusters are, and where processes of this machine listen."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from cli.run_lvdet import lvdet_call, python_program
from cli.small_set import pair
from cluster.conftest import MARK
from cluster.listening import addresses_of, processes_with
from lvdet.errors import LvdetError


def test_a_local_cluster_listens_on_loopback_only(cluster: str) -> None:
    found = addresses_of(processes_with(MARK, cluster))
    assert found
    assert found <= {"127.0.0.1", "::1"}


def test_listening_sees_other_addresses() -> None:
    """So that the test above can fail."""
    with socket.create_server(("0.0.0.0", 0)):
        assert "0.0.0.0" in addresses_of([os.getpid()])


@pytest.mark.parametrize("address", ["local", "local[0]", "local[x]", "ray://", "host", ""])
def test_what_is_no_address(tmp_path: Path, address: str) -> None:
    done = lvdet_call("evaluate", *pair(tmp_path), "--cluster", address)
    done.refused(f"cluster is '{address}', expected local[N], auto, or an address such as ray://")


def test_standard_input_is_refused(tmp_path: Path) -> None:
    gt, _ = pair(tmp_path)
    done = lvdet_call("evaluate", gt, "-", "--cluster", "local[1]")
    done.refused("a cluster cannot read standard input")


def test_skipping_needs_a_cluster(tmp_path: Path) -> None:
    done = lvdet_call("evaluate", *pair(tmp_path), "--skip-bad-shards")
    done.refused("--skip-bad-shards needs --cluster")


def test_errors_need_one_process(tmp_path: Path) -> None:
    done = lvdet_call("evaluate", *pair(tmp_path), "--errors", "--cluster", "local[1]")
    done.refused("--errors cannot be combined with --cluster")


def test_only_one_cluster_at_a_time(cluster: str) -> None:
    from lvdet.cluster.connection import connected

    with pytest.raises(LvdetError, match="connected to a Ray cluster already"), connected("auto"):
        pass


def test_ray_imported_first_would_listen_in_the_network() -> None:
    code = (
        "import os; os.environ.pop('RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER', None)\n"
        "import ray\nfrom lvdet.cluster.connection import connected\n"
        "with connected('local[1]'): pass"
    )
    done = python_program(code)
    assert "set RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0" in done.err
