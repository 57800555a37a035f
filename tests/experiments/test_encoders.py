"""Experiments on a pretrained encoder's features: data of one's own in three lines of TOML."""

import csv
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from askance import data
from askance.cli.progress import Bar
from askance.encoders import FunctionEncoder
from askance.encoders.linear import Standardiser, fit_linear
from askance.errors import DataError, InputError, SpecError
from askance.experiments import runner, spec
from askance.experiments.records import RoundRecord
from askance.experiments.store import ResultStore
from askance.report import facts
from askance.report.elements import PickedItems
from askance.report.picks import picks_section
from askance.seeding import Draws
from askance.training import TrainingJob, fit_regressions

RNG = np.random.default_rng(0)
WORDS = {"animals": ["cat", "dog", "horse"], "money": ["bank", "rate", "loan"]}
NAME = "tests.experiments.test_encoders"


def words(texts):
    return [[text.count(word) for each in WORDS.values() for word in each] for text in texts]


def shades(images):
    return [np.asarray(image).mean(axis=(0, 1)) for image in images]


def of_texts():
    return FunctionEncoder(words, "text", "1")


def of_images():
    return FunctionEncoder(shades, "image", "1")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def reviews(tmp_path):
    with (tmp_path / "reviews.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["review", "topic", "stars"])
        for _ in range(160):
            topic = RNG.choice(list(WORDS))
            rows.writerow([" ".join(RNG.choice(WORDS[topic], size=4)), topic, RNG.integers(5)])
    return tmp_path / "reviews.csv"


@pytest.fixture
def photos(tmp_path):
    for shade, name in ((40, "dark"), (200, "light")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(60):
            pixels = RNG.integers(shade - 40, shade + 40, size=(20, 30, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.png")
    return tmp_path / "photos"


def ran(folder, *lines):
    (folder / "mine.toml").write_text("\n".join(lines))
    experiment = spec.load(folder / "mine.toml").override(
        strategies=["random", "margin"], seeds=2, rounds=1
    )
    runner.run(experiment, folder / "run", workers=1)
    with ResultStore.read(folder / "run") as store:
        return experiment, store.rounds()


def test_a_table_of_texts_in_three_lines(tmp_path, reviews):
    lines = (f'dataset = "./{reviews.name}"', 'text = "review"', f'encoder = "{NAME}:of_texts"')
    experiment, rounds = ran(tmp_path, *lines, 'label = "topic"')
    assert (experiment.name, experiment.model) == ("reviews", "linear")
    assert {record.labels for record in rounds} == {20, 40}
    assert all(record.accuracy > 0.9 for record in rounds if record.labels == 40)
    assert all(record.train_accuracy == 1 for record in rounds)


def picks_shown(folder):
    section = picks_section(facts.read(folder / "run"))
    return [item.text for block in section.blocks if isinstance(block, PickedItems)
            for item in block.picks]  # fmt: skip


def test_a_report_shows_the_texts_that_were_picked(tmp_path, reviews, monkeypatch):
    monkeypatch.setattr("askance.encoders.registry._built", lambda name, kind: of_texts())
    lines = (f'dataset = "{reviews}"', 'text = "review"', 'label = "topic"')
    ran(tmp_path, *lines, 'encoder = "minilm"')
    shown = picks_shown(tmp_path)
    assert len(shown) == 2 * 3
    assert set(shown) <= set(data.load(reviews, label="topic", text="review").raw)


def test_a_report_runs_no_encoder_that_a_store_names(tmp_path, reviews, monkeypatch):
    lines = (f'dataset = "{reviews}"', 'text = "review"', 'label = "topic"')
    ran(tmp_path, *lines, f'encoder = "{NAME}:of_texts"')
    monkeypatch.setattr(f"{NAME}.of_texts", lambda: pytest.fail("the encoder was made"))
    (note,) = picks_section(facts.read(tmp_path / "run")).blocks
    assert f"the features of {NAME}:of_texts. A report runs none but" in note.text


def test_a_report_encodes_nothing(tmp_path, reviews, monkeypatch):
    monkeypatch.setattr("askance.encoders.registry._built", lambda name, kind: of_texts())
    lines = (f'dataset = "{reviews}"', 'text = "review"', 'label = "topic"')
    ran(tmp_path, *lines, 'encoder = "minilm"')
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "another"))
    (note,) = picks_section(facts.read(tmp_path / "run")).blocks
    assert "are not in this machine's cache" in note.text


def test_a_folder_of_images(tmp_path, photos):
    lines = (f'dataset = "./{photos.name}"', f'encoder = "{NAME}:of_images"')
    _, rounds = ran(tmp_path, *lines)
    assert all(record.accuracy == 1 for record in rounds)


def test_other_networks_take_an_encoders_features_too(tmp_path, reviews):
    experiment, rounds = ran(
        tmp_path,
        f'dataset = "./{reviews.name}"',
        'text = "review"',
        'label = "topic"',
        f'encoder = "{NAME}:of_texts"',
        'model = "mlp"',
        "[recipe]",
        "epochs = 5",
        "learning_rates = [0.01]",
    )
    assert experiment.model == "mlp"
    assert len(rounds) == 8


def test_features_are_standardised_by_the_pool(reviews):
    plain = data.load(reviews, label="topic", text="review")
    encoded = data.load(reviews, label="topic", text="review", encoder=of_texts())
    assert encoded.train.inputs.shape == (len(plain.train), 6)
    torch.testing.assert_close(encoded.train.inputs.mean(dim=0), torch.zeros(6), atol=1e-5, rtol=0)
    np.testing.assert_array_equal(encoded.train.index, plain.train.index)
    standardise = Standardiser.of(np.array(words(encoded.raw), dtype=float))
    own = standardise(np.array(words(encoded.raw), dtype=float))
    np.testing.assert_allclose(encoded.train.inputs, own, atol=1e-5)


def test_jobs_are_solved_and_equal_jobs_once():
    x = torch.from_numpy(RNG.normal(size=(30, 4))).float()
    y = torch.from_numpy(RNG.integers(0, 3, 30))
    rows = np.arange(12)
    jobs = [TrainingJob(rows, y[:12], 1.0, Draws(0)) for _ in range(2)]
    solved = []
    fitted = fit_regressions(x, jobs, 4, on_epoch=lambda *at: solved.append(at))
    assert solved == [(1, 1)]
    standardise = Standardiser.of(x.numpy())
    expected = fit_linear(standardise(x.numpy()[:12]), y[:12].numpy(), 4)
    for embedding in fitted.embed(x):
        np.testing.assert_allclose(
            embedding.logits, expected.logits(standardise(x.numpy())), atol=1e-4
        )


def test_a_spec_with_an_encoder_is_read_as_it_is_written(reviews):
    written = {
        "dataset": str(reviews),
        "text": "review",
        "encoder": "minilm",
        "model_options": {"strength": 0.1},
    }
    read = spec.Spec.from_dict(written)
    assert spec.Spec.from_dict(read.to_dict()) == read
    assert read.hash != spec.Spec.from_dict(written | {"encoder": "hf:other"}).hash


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": "minlm"}, "did you mean 'minilm'"),
        ({"encoder": ""}, "an encoder's name"),
        ({"dataset": "digits"}, "text is for a table of your own; 'digits' knows its columns"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_read(reviews, changes, message):
    with pytest.raises(SpecError, match=message):
        spec.Spec.from_dict(
            {"dataset": str(reviews), "text": "review", "encoder": "minilm"} | changes
        )


def test_an_encoder_of_another_kind_is_refused(reviews, photos):
    with pytest.raises(InputError, match="takes images, the data are texts"):
        data.load(reviews, label="topic", text="review", encoder=of_images())
    with pytest.raises(InputError, match="takes texts, the data are images"):
        data.load(photos, encoder=of_texts())
    with pytest.raises(InputError, match="takes texts or images, the data are numbers"):
        data.load("isolet", encoder=of_texts(), download=False)
    with pytest.raises(DataError, match="name the column of texts with text="):
        data.load(reviews, label="topic", encoder=of_texts())


class Watcher(runner.RunObserver):
    def __init__(self):
        self.heard = []

    def encoding(self, spec, done, total):
        self.heard.append((spec.encoder, done, total))

    def began(self, *_):
        self.heard.append("began")


def test_a_run_tells_how_far_encoding_is(tmp_path, reviews):
    lines = (f'dataset = "./{reviews.name}"', 'text = "review"', f'encoder = "{NAME}:of_texts"')
    (tmp_path / "mine.toml").write_text("\n".join((*lines, 'label = "topic"')))
    watcher, mine = Watcher(), spec.load(tmp_path / "mine.toml").override(["random"], 1, 0)
    runner.run(mine, tmp_path / "run", workers=1, observers=[watcher])
    *steps, last = watcher.heard
    assert last == "began"
    assert steps[0] == (f"{NAME}:of_texts", 0, 160)
    assert steps[-1] == (f"{NAME}:of_texts", 160, 160)
    assert [at for _, at, _ in steps] == sorted(at for _, at, _ in steps)


def test_the_bar_shows_encoding_and_then_the_rounds(capsys):
    bar = Bar()
    mine = spec.Spec.from_dict({"dataset": "./a.csv", "text": "t", "encoder": "minilm"})
    bar.encoding(mine, 0, 200)
    bar.encoding(mine, 50, 200)
    (task,) = bar._encoding.tasks
    assert (task.description, task.completed, task.total) == ("encode · minilm", 50, 200)
    bar.began(mine, data.load("digits"), "one", 10, 0)
    assert not bar._encoding.live.is_started
    assert bar.progress.live.is_started
    bar.close()


def test_the_bar_names_the_best_mean_of_the_last_finished_round():
    """Not the best run: one lucky seed of a rule says nothing."""
    bar = Bar()
    mine = spec.Spec.from_dict({"dataset": "./a.csv", "text": "t", "encoder": "minilm"})
    mine = mine.override(["random", "margin"], 2, 1)
    bar.began(mine, data.load("digits"), "one", 10, 0)
    accuracies = {("random", 0): 0.9, ("random", 1): 0.1, ("margin", 0): 0.5, ("margin", 1): 0.7}
    for number, shift in ((0, 0.0), (1, 0.05)):
        for (rule, seed), accuracy in accuracies.items():
            record = RoundRecord(rule, seed, number, 20, accuracy + shift, 0.1, 1.0)
            bar.resumed(record) if seed else bar.stored(record)
            bar.resumed(replace(record, strategy="badge", accuracy=1.0))  # not asked for
            last = (rule, seed) == ("margin", 1)
            assert (
                bar.leader
                == {
                    (0, False): "",
                    (0, True): "best in round 0: margin, mean 60.0%",
                    (1, False): "best in round 0: margin, mean 60.0%",
                    (1, True): "best in round 1: margin, mean 65.0%",
                }[number, last]
            )
    bar.epoch(1, 5)
    assert bar.progress.tasks[0].fields["state"].endswith("best in round 1: margin, mean 65.0%")
    bar.close()


def test_an_encoder_may_lie_beside_the_file(tmp_path, reviews):
    (tmp_path / "beside_it.py").write_text(f"from {NAME} import of_texts\n")
    lines = (f'dataset = "./{reviews.name}"', 'text = "review"', 'encoder = "beside_it:of_texts"')
    _, rounds = ran(tmp_path, *lines, 'label = "topic"')
    assert len(rounds) == 2 * 2 * 2


def test_embeddings_that_are_there_need_no_encoder(tmp_path):
    rows = RNG.normal(size=(80, 4)) + 3 * (np.arange(80) % 2)[:, None]
    table = {
        "id": [f"row {i}" for i in range(80)],
        "emb": rows.tolist(),
        "label": ["ab"[i % 2] for i in range(80)],
    }
    pq.write_table(pa.table(table), tmp_path / "mine.parquet")
    experiment, rounds = ran(tmp_path, 'dataset = "./mine.parquet"', 'features = "emb"')
    assert (experiment.name, experiment.model) == ("mine", "linear")
    assert all(record.accuracy > 0.9 for record in rounds if record.labels == 40)
    shown = picks_shown(tmp_path)
    assert all(len(text.split(", ")) == 4 for text in shown)


def test_features_are_part_of_a_spec_where_they_are_there(tmp_path):
    written = {"dataset": "./mine.csv", "features": ["age", "e*"]}
    read = spec.Spec.from_dict(written)
    assert read.features == ("age", "e*")
    assert spec.Spec.from_dict(read.to_dict()) == read
    assert read.to_dict()["features"] == ["age", "e*"]
    assert spec.Spec.from_dict(written | {"features": "age"}).hash != read.hash
    assert "features" not in spec.load("digits").to_dict()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": []}, "features must be the name of a column, several in a list"),
        ({"features": 3}, "features must be the name of a column, several in a list"),
        ({"features": ["a", ""]}, "features"),
        ({"text": "a"}, "leave text out, or features"),
        ({"encoder": "minilm"}, "leave encoder out, or features"),
        ({"dataset": "digits"}, "features is for a table of your own"),
    ],
)
def test_features_that_cannot_be_are_refused(changes, message):
    with pytest.raises(SpecError, match=message):
        spec.Spec.from_dict({"dataset": "./mine.csv", "features": "emb"} | changes)


def test_a_strength_must_be_a_number_above_zero(tmp_path, reviews):
    with pytest.raises(InputError, match="strength must be a number above 0"):
        ran(
            tmp_path,
            f'dataset = "./{reviews.name}"',
            'text = "review"',
            'label = "topic"',
            f'encoder = "{NAME}:of_texts"',
            "[model_options]",
            "strength = -1",
        )
