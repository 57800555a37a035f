"""A Hugging Face classifier: batches are mappings, the answer has `.logits`, and nothing is said twice.

python examples/huggingface.py
"""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification, BertConfig

import askance

KEYWORDS, VOCABULARY, LENGTH = 3, 40, 10


def texts(count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
    """Token sequences of which one token, anywhere, tells the class."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(KEYWORDS + 1, VOCABULARY, (count, LENGTH), generator=generator)
    labels = torch.randint(KEYWORDS, (count,), generator=generator)
    where = torch.randint(LENGTH, (count,), generator=generator)
    tokens[torch.arange(count), where] = 1 + labels
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}, labels


def trained(inputs: dict[str, Tensor], labels: Tensor) -> torch.nn.Module:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=LENGTH, num_labels=KEYWORDS,
    )  # fmt: skip
    model: torch.nn.Module = AutoModelForSequenceClassification.from_config(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        optimizer.zero_grad()
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
    return model


def main() -> None:
    pool, truth = texts(1_000, seed=0)
    test, answers = texts(500, seed=1)
    for run in askance.loop(
        pool, askance.oracles.Truth(truth), strategy="badge", batch=40, rounds=3
    ):
        model = trained(*run.labeled).eval()
        with torch.no_grad():
            right = model(**test).logits.argmax(1) == answers
        print(f"{len(run.labels)} labels: {right.float().mean():.1%}")
        run.ask(model)


if __name__ == "__main__":
    main()
