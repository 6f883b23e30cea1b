"""The optimiser: stochastic gradient descent with momentum, as in the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from lvdet.errors import InputError
from lvdet.training.configuration.config import Schedule


def build_optimizer(model: nn.Module, schedule: Schedule) -> torch.optim.SGD:
    """SGD over the trained parameters. Weights and biases decay alike, but normalisation layers do
    not, as in Detectron2, which the paper used."""
    of_norms = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, _NormBase | nn.GroupNorm | nn.LayerNorm)
        for parameter in module.parameters(recurse=False)
    }
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trained if id(p) not in of_norms]},
        {"params": [p for p in trained if id(p) in of_norms], "weight_decay": 0.0},
    ]
    return torch.optim.SGD(
        [group for group in groups if group["params"]],
        lr=schedule.rate,
        momentum=schedule.momentum,
        weight_decay=schedule.weight_decay,
        fused=all(parameter.is_cuda for parameter in trained) or None,
    )


def momenta(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's momenta, by parameter name."""
    return {
        name: optimizer.state[parameter]["momentum_buffer"]
        for name, parameter in model.named_parameters()
        if optimizer.state.get(parameter, {}).get("momentum_buffer") is not None
    }


def load_momenta(
    model: nn.Module, optimizer: torch.optim.Optimizer, found: Mapping[str, Tensor], where: object
) -> None:
    """Restores momenta, which are stored in memory like their parameters."""
    parameters = dict(model.named_parameters())
    for name, tensor in found.items():
        if name not in parameters or parameters[name].shape != tensor.shape:
            raise InputError(f"{where}: momentum of {name} does not fit the detector")
        buffer = torch.empty_like(parameters[name]).copy_(tensor)
        optimizer.state[parameters[name]]["momentum_buffer"] = buffer
