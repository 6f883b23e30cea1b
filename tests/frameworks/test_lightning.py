"""The torchmetrics metric in a Lightning loop."""

from __future__ import annotations

from typing import Any

import lightning
import pytest
import torch
from torch.utils.data import DataLoader

from integrations.torch_images import random_images
from lvdet.integrations.torchmetrics import MeanAveragePrecision

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("default"),  # those of the framework and of its packages
]


def test_log_dict_in_a_validation_loop() -> None:
    predictions, targets = random_images(9)
    expected = MeanAveragePrecision()
    expected.update(predictions, targets)

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))
            self.metric = MeanAveragePrecision()

        def validation_step(self, batch: list[int], _: int) -> None:
            self.metric.update([predictions[at] for at in batch], [targets[at] for at in batch])

        def on_validation_epoch_end(self) -> None:
            self.log_dict(self.metric.compute())
            self.metric.reset()

    trainer = lightning.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    loader: Any = DataLoader(range(len(targets)), batch_size=5, collate_fn=list)  # type: ignore[arg-type]
    (logged,) = trainer.validate(Model(), loader, verbose=False)
    assert logged == {name: value.item() for name, value in expected.compute().items()}
