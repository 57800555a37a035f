"""Items that are mappings: a tokenizer's output in every form, as a pool and as a labelled set."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import askance
from askance.errors import InputError
from askance.oracles import Truth
from askance.strategies import Grad
from tests.embedding import zoo
from tests.embedding.test_sources import Items, Poison

COUNT = 12
TOKENS = zoo.token_batch(COUNT)
TOKENS["attention_mask"][:, 0] = 1
Y = torch.arange(COUNT) % 3
MODEL = zoo.seeded(zoo.Tokens)
LISTS = {key: value.tolist() for key, value in TOKENS.items()}


def tensors(i):
    return {key: value[i] for key, value in TOKENS.items()}


def lists(i):
    return {key: value[i] for key, value in LISTS.items()}


def ragged(i):
    """The same point as `tensors(i)`, shortened by the padding at its end."""
    length = int(TOKENS["attention_mask"][i].nonzero().max()) + 1
    return {key: value[:length] for key, value in lists(i).items()}


def padded(items):
    """What a padding collator does, labels and all."""
    widest = max(len(item["input_ids"]) for item in items)
    return {
        key: torch.tensor(
            [
                [*item[key], *[0] * (widest - len(item[key]))] if key in LISTS else item[key]
                for item in items
            ]
        )
        for key in items[0]
    }


class Words(IterableDataset):
    def __iter__(self):
        return map(lists, range(COUNT))


POOLS = {
    "mapping of lists": LISTS,
    "mapping of lists with labels": {**LISTS, "labels": Poison()},
    "dataset of lists": Items(lists, COUNT),
    "dataset of lists with labels": Items(lambda i: {**lists(i), "label": Poison()}, COUNT),
    "dataset of (lists, y)": Items(lambda i: (lists(i), Poison()), COUNT),
    "list of mappings of lists": [lists(i) for i in range(COUNT)],
    "list of mappings of tensors": [tensors(i) for i in range(COUNT)],
    "stream of lists": Words(),
    "loader of lists": DataLoader(Items(lists, COUNT), 5),
    "loader that pads": DataLoader(Items(ragged, COUNT), 5, collate_fn=padded),
}
LABELED = {
    "(mapping of lists, y)": (LISTS, Y),
    "mapping of lists": {**LISTS, "labels": Y.tolist()},
    "(dataset of lists, y)": (Items(lists, COUNT), Y),
    "(list of mappings, y)": ([lists(i) for i in range(COUNT)], Y),
    "dataset of (lists, y)": Items(lambda i: (lists(i), int(Y[i])), COUNT),
    "dataset of lists with labels": Items(lambda i: {**lists(i), "label": int(Y[i])}, COUNT),
    "loader of (lists, y)": DataLoader(Items(lambda i: (lists(i), int(Y[i])), COUNT), 5),
    "loader that pads": DataLoader(
        Items(lambda i: {**ragged(i), "labels": int(Y[i])}, COUNT), 5, collate_fn=padded
    ),
    "(loader that pads, y)": (DataLoader(Items(ragged, COUNT), 5, collate_fn=padded), Y),
}


@pytest.mark.parametrize("kind", POOLS)
def test_the_model_is_called_by_name_with_one_tensor_a_name(kind):
    emb = askance.embed(MODEL, POOLS[kind], batch_size=5)
    torch.testing.assert_close(emb.logits, askance.embed(MODEL, TOKENS).logits)


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("strategy", ["badge", "grad", "margin", "random"])
def test_the_same_picks_from_any_pool(kind, strategy):
    expected = askance.select(MODEL, (TOKENS, Y), TOKENS, 4, strategy=strategy)
    picks = askance.select(MODEL, (TOKENS, Y), POOLS[kind], 4, strategy=strategy, batch_size=5)
    np.testing.assert_array_equal(picks.indices, expected.indices)


@pytest.mark.parametrize("kind", LABELED)
@pytest.mark.parametrize("rule", [Grad(), Grad(reference_size=7)])
def test_the_same_picks_from_any_labelled_set(kind, rule):
    expected = askance.select(MODEL, (TOKENS, Y), TOKENS, 4, strategy=rule)
    picks = askance.select(MODEL, LABELED[kind], TOKENS, 4, strategy=rule, batch_size=5)
    np.testing.assert_array_equal(picks.indices, expected.indices)


@pytest.mark.parametrize(
    "kind", sorted(set(POOLS) - {"stream of lists", "mapping of lists with labels"})
)
@pytest.mark.parametrize("strategy", ["badge", "grad", "margin"])
def test_a_loop_over_any_of_them_makes_the_same_picks(kind, strategy):
    def asked(pool):
        options = {"strategy": strategy, "batch": 2, "rounds": 2}
        for run in askance.loop(pool, Truth(Y), **options):
            inputs, labels = run.labeled
            assert labels.equal(Y[torch.from_numpy(run.rows)])
            assert len(askance.embed(MODEL, inputs)) == len(labels)
            run.ask(MODEL)
        return run.rows.tolist()

    assert asked(POOLS[kind]) == asked(TOKENS)


def test_lists_in_lists_are_one_tensor():
    class Boxes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(6, 3)

        def forward(self, boxes, scale):
            return self.head(boxes.flatten(1) * scale[:, None])

    model, boxes = zoo.seeded(Boxes), torch.randn(7, 3, 2)
    items = [{"boxes": box.tolist(), "scale": 2.0} for box in boxes]
    emb = askance.embed(model, items, batch_size=3)
    torch.testing.assert_close(emb.logits, model.head(2 * boxes.flatten(1)))


def test_several_tensors_in_one_entry_stay_several():
    class Pairs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(6, 3)

        def forward(self, pair):
            assert isinstance(pair, tuple)
            return self.head(torch.cat(pair, dim=1))

    x = torch.randn(5, 6)
    items = [{"pair": (row[:2], row[2:])} for row in x]
    model = zoo.seeded(Pairs)
    torch.testing.assert_close(askance.embed(model, items).logits, model.head(x))


@pytest.mark.parametrize(
    "pool", [{"input_ids": [[1, 2], [3]]}, [{"input_ids": [1, 2]}, {"input_ids": [3]}]]
)
def test_lists_of_different_lengths_ask_for_padding(pool):
    with pytest.raises(InputError, match=r"pad them to one length.*DataCollatorWithPadding"):
        askance.embed(MODEL, pool)


def test_kept_inputs_of_different_widths_ask_for_padding():
    short = Items(lambda i: {key: value[: 5 - i // 6] for key, value in lists(i).items()}, COUNT)
    labeled = DataLoader(short, 6, collate_fn=padded), Y
    with pytest.raises(InputError, match=r"differ between batches \(\(4,\) and \(5,\)\); pad them"):
        askance.select(MODEL, labeled, TOKENS, 2, strategy=Grad(parameters="all"))


class BatchEncoding(dict):
    """As Hugging Face's: a batch, also of one text."""


@pytest.mark.parametrize("one", [lambda v: v[None], lambda v: [v.tolist()], lambda v: v.tolist()])
def test_a_tokenizers_batch_of_one_text_is_one_point(one):
    items = [BatchEncoding({k: one(v) for k, v in tensors(i).items()}) for i in range(COUNT)]
    expected = askance.embed(MODEL, TOKENS).logits
    pairs = [(item, Poison()) for item in items]
    for pool in (items, pairs, DataLoader(items, 5), DataLoader(pairs, 5)):
        torch.testing.assert_close(askance.embed(MODEL, pool, batch_size=5).logits, expected)
    expected = askance.select(MODEL, (TOKENS, Y), TOKENS, 4).indices
    pairs = [(item, int(y)) for item, y in zip(items, Y, strict=True)]
    named = [BatchEncoding({**item, "labels": int(y)}) for item, y in pairs]
    for labeled in (pairs, named, (items, Y), DataLoader(pairs, 5)):
        picks = askance.select(MODEL, labeled, TOKENS, 4)
        np.testing.assert_array_equal(picks.indices, expected)


def test_a_plain_mapping_of_one_row_is_left_as_it_is():
    class Rows(zoo.Tokens):
        def forward(self, input_ids, attention_mask):
            assert input_ids.ndim == 3
            return super().forward(input_ids[:, 0], attention_mask[:, 0])

    items = [{k: v[None] for k, v in tensors(i).items()} for i in range(COUNT)]
    expected = askance.embed(MODEL, TOKENS).logits
    torch.testing.assert_close(askance.embed(zoo.seeded(Rows), items).logits, expected)


# --- the real ones --------------------------------------------------------------------------------

TEXTS = ["the cat sat", "a dog", "the bank lent money", "tree", "leaf and tree and cat", "dog"]


@pytest.fixture(scope="module")
def tokenizer():
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = ["[PAD]", "[UNK]", *sorted({word for text in TEXTS for word in text.split()})]
    vocabulary = {word: number for number, word in enumerate(words)}
    model = tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]")
    whole = tokenizers.Tokenizer(model)
    whole.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=whole, pad_token="[PAD]", unk_token="[UNK]"
    )


@pytest.fixture(scope="module")
def classifier():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=16, num_labels=3,
    )  # fmt: skip
    return zoo.seeded(transformers.AutoModelForSequenceClassification.from_config, config)


def test_a_hugging_face_tokenizer_and_classifier(tokenizer, classifier):
    import transformers

    y = torch.tensor([0, 1, 2, 0, 1, 2])
    tokens = tokenizer(TEXTS, padding=True, return_tensors="pt")
    fixed = {"padding": "max_length", "max_length": 8}

    def each(**options):
        return Items(lambda i: (tokenizer(TEXTS[i], **options), int(y[i])), len(TEXTS))

    pads = DataLoader(
        Items(lambda i: {**tokenizer(TEXTS[i]), "label": int(y[i])}, len(TEXTS)),
        batch_size=4,
        collate_fn=transformers.DataCollatorWithPadding(tokenizer),
    )
    expected = askance.embed(classifier, tokens)
    assert expected.logits.shape == (6, 3)
    picks = askance.select(classifier, (tokens, y), tokens, 2, strategy="grad")
    for pool in (
        tokenizer(TEXTS, padding=True),
        each(**fixed),
        each(**fixed, return_tensors="pt"),
        pads,
    ):
        emb = askance.embed(classifier, pool, batch_size=4)
        torch.testing.assert_close(emb.logits, expected.logits, rtol=1e-5, atol=1e-6)
        labeled = (pool, y) if not isinstance(pool, Items) else pool
        again = askance.select(classifier, labeled, pool, 2, strategy="grad", batch_size=4)
        np.testing.assert_array_equal(again.indices, picks.indices)
