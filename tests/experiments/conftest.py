"""Runs at the tiny scale, made once for all tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lvdet.experiments.request import Request

#: A third of the names, with every kind of condition among them.
THIRD = (
    "teaser",
    "balance_calib",
    "higher_dets_per_im",
    "lvis_subsets",
    "ap_fixed_losses",
    "ap_fixed_crt",
    "score-dist",
    "ap_pool_calib",
    "calibrated_qualitative",
    "supp_nms_comparison",
)


def tiny(folder: Path, *names: str, **options: Any) -> Request:
    """A request at the tiny scale on this process's CPU, of one seed unless others are given."""
    torch.set_num_threads(1)
    options = {"seeds": (0,), "device": "cpu"} | options
    return Request(names or THIRD, "tiny", folder / "results", folder / "work", **options)


@pytest.fixture(scope="session")
def tiny_runs(tmp_path_factory: pytest.TempPathFactory) -> Request:
    """The runs of a third of the names, carried out."""
    request = tiny(tmp_path_factory.mktemp("experiments"))
    request.carry_out()
    return request
