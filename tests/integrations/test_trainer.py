"""A Trainer of transformers in place of a model: fine-tune, select, add, repeat."""

import warnings
from types import SimpleNamespace

import datasets
import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback
from transformers.utils import is_accelerate_available

import askance
from askance.errors import InputError
from askance.stopping import StablePredictions

KEYWORDS, VOCABULARY = 3, 20
DRAWS = np.random.default_rng(0)


def texts(count):
    """Token sequences of several lengths; one token, anywhere, tells the class."""
    tokens = [DRAWS.integers(KEYWORDS + 1, VOCABULARY, size=4 + row % 5) for row in range(count)]
    labels = DRAWS.integers(KEYWORDS, size=count)
    for row, label in zip(tokens, labels, strict=True):
        row[DRAWS.integers(len(row))] = 1 + label
    return {"input_ids": [row.tolist() for row in tokens], "label": labels.tolist()}


def padded(items):
    """Sequences padded to one length, as transformers.DataCollatorWithPadding makes them."""
    length = max(len(item["input_ids"]) for item in items)
    ids = torch.zeros(len(items), length, dtype=torch.long)
    for row, item in enumerate(items):
        ids[row, : len(item["input_ids"])] = torch.tensor(item["input_ids"])
    batch = {"input_ids": ids, "attention_mask": (ids > 0).long()}
    if "label" in items[0]:
        batch["labels"] = torch.tensor([item["label"] for item in items])
    return batch


def hosted(columns, names=("ant", "bee", "cat")):
    made = datasets.Dataset.from_dict(columns | {"text": ["…"] * len(columns["label"])})
    return made.cast_column("label", datasets.ClassLabel(names=list(names)))


def trainer_of(dataset, folder, epochs=0):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16, num_labels=KEYWORDS,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    if not is_accelerate_available():  # without which transformers makes no Trainer
        assert not epochs
        args = SimpleNamespace(per_device_eval_batch_size=7, dataloader_num_workers=0)
        return SimpleNamespace(
            model=model, args=args, data_collator=padded, get_train_dataloader=None
        )
    args = TrainingArguments(
        str(folder), num_train_epochs=epochs, per_device_train_batch_size=8, learning_rate=5e-3,
        per_device_eval_batch_size=7, report_to=[], save_strategy="no", logging_strategy="no",
        disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    trainer = Trainer(model, args, data_collator=padded, train_dataset=dataset)
    trainer.remove_callback(PrinterCallback)
    if epochs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer.train()
    return trainer


@pytest.mark.parametrize("rule", ["margin", "grad", "badge"])
def test_the_picks_are_those_of_its_model_on_padded_batches(rule, tmp_path):
    seen, pool = texts(9), texts(30)
    labeled = hosted(seen)
    trainer = trainer_of(labeled, tmp_path)

    def whole(columns):
        return padded([{"input_ids": ids} for ids in columns["input_ids"]])

    options = {"strategy": rule, "seed": 1}
    expected = askance.select(
        trainer.model, (whole(seen), seen["label"]), whole(pool), 5, **options
    )
    picks = askance.select(trainer, labeled, hosted(pool), 5, **options)
    assert picks.indices.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(picks.scores, expected.scores, rtol=1e-4)
    assert {why.pseudo_label for why in picks.explain()} <= {"ant", "bee", "cat"}
    pair = askance.select(
        trainer, (labeled.remove_columns("label"), seen["label"]), hosted(pool), 5, **options
    )
    assert pair.indices.tolist() == expected.indices.tolist()
    assert picks.items.column_names == ["input_ids", "text"]
    logits = askance.embed(trainer, hosted(pool)).logits
    torch.testing.assert_close(logits, askance.embed(trainer.model, whole(pool)).logits)


def test_the_pool_s_labels_never_reach_the_collator(tmp_path):
    def watching(items):
        assert all("label" not in item for item in items)
        return padded(items)

    trainer = trainer_of(None, tmp_path)
    trainer.data_collator = watching
    askance.select(trainer, None, hosted(texts(20)), 3, strategy="entropy")


def test_a_dataset_without_tokens_says_what_to_do(tmp_path):
    pool = datasets.Dataset.from_dict({"text": ["a", "b"]})
    with pytest.raises(InputError, match=r"none of the dataset's columns, text; tokenize it"):
        askance.select(trainer_of(None, tmp_path), None, pool, 1, strategy="margin")


@pytest.mark.skipif(not is_accelerate_available(), reason="a Trainer trains with accelerate")
def test_fine_tune_select_add_repeat(tmp_path):
    pool, test = hosted(texts(200)), texts(100)
    answers = torch.tensor(pool["label"][:])
    sizes, accuracies = [], []
    loop = askance.loop(
        pool.remove_columns("label"), askance.oracles.Truth(answers), strategy="badge",
        batch=30, rounds=2, stop=StablePredictions(kappa=1.0, window=9),
    )  # fmt: skip
    for run in loop:
        items, labels = run.labeled
        trainer = trainer_of(items.add_column("label", labels.tolist()), tmp_path, epochs=14)
        said = trainer.predict(hosted(test)).predictions.argmax(1)
        accuracies.append((said == np.array(test["label"])).mean())
        sizes.append(len(labels))
        run.ask(trainer)
    assert sizes == [30, 60, 90]
    assert accuracies[-1] > 0.8, accuracies
    assert len(run.checkpoints) == 2
