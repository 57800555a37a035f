""" "90% sure" is right about nine times in ten: on real data, with the labels that a rule asks for."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import askance
from askance.data.columns import read_parquet
from askance.data.load import data_folders
from askance.data.parquet import find
from askance.encoders.linear import Standardiser, _temperature, fit_linear
from askance.seeding import Draws
from tests.naive import linear as naive

AT = (100, 200, 300)  # labels


def asked(rows, labels, seed):
    """(rows asked for so far, the regression on their labels), 20 to 300 of them, as a rule asks."""
    classes = int(labels.max()) + 1
    known = askance.select(
        None, None, rows.astype(np.float32), 20, strategy="maxherding", seed=seed
    ).indices
    while True:
        fitted = fit_linear(rows[known], labels[known], classes)
        yield known, fitted
        if len(known) >= AT[-1]:
            return
        pool = askance.Embedding(
            logits=torch.from_numpy(fitted.logits(rows)).float(),
            features=torch.from_numpy(rows).float(),
        )
        labeled = pool[known], torch.from_numpy(labels[known])
        draws = Draws(seed, len(known))
        picks = askance.select(
            None, labeled, pool, 20, strategy="powergrad", seed=draws, exclude=known
        )
        known = np.concatenate([known, picks.indices])


def asked_and_guessed(features, labels, seed):
    """Labels → (confidence, whether it is right) of the regression on every item without an answer."""
    rows, found = Standardiser.of(features)(features), {}
    for known, fitted in asked(rows, labels, seed):
        if len(known) in AT:
            rest = np.setdiff1d(np.arange(len(labels)), known)
            probabilities = fitted.probabilities(rows[rest])
            right = probabilities.argmax(axis=1) == labels[rest]
            found[len(known)] = probabilities.max(axis=1), right
    return found


def encoded(name, encoder, column):
    """2,000 items of a dataset as an encoder's features, and their labels."""
    table = read_parquet(find(name, data_folders())[0])
    labels = np.array(table["label"].to_pylist())
    groups = (1, 9, 13, 16) if name == "20newsgroups" else np.unique(labels)
    rows = np.flatnonzero(np.isin(labels, groups))
    rows = np.sort(np.random.default_rng(0).choice(rows, 2000, replace=False))
    items = [table[column][row].as_py() for row in rows.tolist()]
    if column == "text":
        items = [text.replace("\x00", " ") for text in items]
    features = askance.embed(encoder, items).features.numpy()
    return features, np.unique(labels[rows], return_inverse=True)[1]


def check(features, labels, seeds, slack):
    """Confidence from 85% to 95%, and from 90% up: how often is it right?"""
    runs = [asked_and_guessed(features, labels, seed) for seed in range(seeds)]
    for count in AT:
        confidence = np.concatenate([run[count][0] for run in runs])
        right = np.concatenate([run[count][1] for run in runs])
        about_90 = (confidence > 0.85) & (confidence < 0.95)
        assert about_90.sum() > 100
        assert right[about_90].mean() > 0.9 - slack[count], count
        assert right[confidence >= 0.9].mean() > 0.9, count
        # Nor is it far too modest over all items.
        assert right.mean() - confidence.mean() < 0.1, count


def test_on_digits_ninety_percent_is_nine_in_ten():
    X, y = load_digits(return_X_y=True)
    check(X, y, 1, {100: 0.05, 200: 0.05, 300: 0.05})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "encoder", "column", "slack"),
    [
        ("stl10", "efficientnet-lite0", "image", {100: 0.08, 200: 0.06, 300: 0.04}),
        ("20newsgroups", "minilm", "text", {100: 0.02, 200: 0.02, 300: 0.02}),
        ("sst2", "minilm", "text", {100: 0.08, 200: 0.04, 300: 0.04}),
    ],
)
def test_on_photos_and_texts_ninety_percent_is_nine_in_ten(name, encoder, column, slack):
    check(*encoded(name, encoder, column), 4, slack)


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_temperature_is_the_likeliest(scale, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 60)
    logits = scale * (rng.normal(size=(60, 3)) + 2 * np.eye(3)[labels])
    found = _temperature(logits, labels)
    assert found == pytest.approx(naive.temperature(logits, labels), rel=0.02)
