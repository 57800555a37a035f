"""A Lightning module, trained by its Trainer: it is an `nn.Module`, so it is asked as it is.

python examples/lightning_module.py
"""

from __future__ import annotations

import logging
import warnings

import lightning
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import askance

warnings.filterwarnings("ignore")  # Lightning's hints on workers and short epochs
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(lightning.LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x)
        return logits

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        inputs, labels = batch
        return nn.functional.cross_entropy(self(inputs), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    X, y = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels)
    oracle = askance.oracles.Truth(y[:1_200])
    for run in askance.loop(X[:1_200], oracle, strategy="grad-spread", batch=40, rounds=3):
        lightning.seed_everything(0, verbose=False)
        module = Classifier()
        trainer = lightning.Trainer(
            max_epochs=25, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        trainer.fit(module, DataLoader(TensorDataset(*run.labeled), batch_size=16, shuffle=True))
        module.eval()
        right = module(X[1_200:]).argmax(1) == y[1_200:]
        print(f"{len(run.labels)} labels: {right.float().mean():.1%}")
        run.ask(module)


if __name__ == "__main__":
    main()
