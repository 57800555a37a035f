"""The report of an experiment on data of one's own: what was learned from, and how to have it again."""

import shutil

import pytest

from askance import report
from askance.experiments import runner, spec
from askance.experiments.store import ResultStore
from askance.paper import SUITE
from askance.report import facts, repeat
from askance.report.provenance import provenance_section

WORDS = ("cat", "dog"), ("bank", "loan")
TOML = """
dataset = "./texts.csv"
text = "review"
label = "kind"
encoder = "tests.report.test_own_data:encoder"
strategies = ["random", "margin"]
[schedule]
batch = 5
rounds = 2
"""


def encoder():
    from askance.encoders import FunctionEncoder

    return FunctionEncoder(lambda texts: [[t.count(w) for w in (*WORDS[0], *WORDS[1])] for t in texts],
                           "text", "1")  # fmt: skip


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """An experiment whose file is neither called as its name says nor where the report is made."""
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    folder.mkdir()
    lines = [f"{WORDS[i % 2][i // 2 % 2]} {i},{'am'[i % 2]}" for i in range(100)]
    (folder / "texts.csv").write_text("review,kind\n" + "\n".join(lines))
    (folder / "other.toml").write_text(TOML)
    runner.run(spec.load(folder / "other.toml").override(seeds=2), tmp_path / "run", workers=1)
    return tmp_path


@pytest.fixture
def undrawn(monkeypatch):
    monkeypatch.setattr("askance.report.markdown._saved", lambda picture, files: files / "a.svg")


@pytest.mark.usefixtures("undrawn")
def test_a_regression_on_own_texts_is_told_as_what_it_is(ran):
    text = report.write(ran / "run", ran / "r.md").read_text()
    first = next(line for line in text.split("\n") if line.startswith("**"))
    assert first.startswith("**Too few seeds to say whether active learning helped: with 2 seeds,")
    assert "the same regression was fitted anew" in text
    assert "texts with linear on tests" in text
    assert "| encoder | tests.report" in text
    assert "| split | 72 in the pool, 8 for validation, 20 for the test; 2 classes |" in text
    assert "logistic regression, solved and not trained" in text
    for wrong in ("from scratch", "learning rate", "official", "epoch", "paper", "∞", "network"):
        assert wrong not in text


def test_the_command_names_the_file_where_it_is(ran, monkeypatch):
    (store,) = facts.read(ran / "run").stores
    assert repeat.repeat(store).command == (
        f"askance run {ran / 'data' / 'other.toml'} --seeds 2 --out {ran / 'run'}"
    )
    monkeypatch.chdir(ran)
    (store,) = facts.read("run").stores
    assert repeat.repeat(store) == repeat.Repeat("askance run data/other.toml --seeds 2 --out run")


def test_a_file_that_is_gone_or_changed_is_written_out(ran, monkeypatch):
    monkeypatch.chdir(ran)
    (store,) = facts.read("run").stores
    file = ran / "data" / "other.toml"
    for text in (TOML.replace("batch = 5", "batch = 6"), "nothing", None):
        file.unlink() if text is None else file.write_text(text)
        again = repeat.repeat(store)
        assert again.command == "askance run texts.toml --out run"
        assert "save the file above as texts.toml in data, from where ./texts.csv" in again.how
        assert "recipe" not in again.file
        (ran / "data" / "again.toml").write_text(again.file)
        assert spec.load(ran / "data" / "again.toml").hash == store.info["hash"]


def test_the_store_and_the_file_may_move_together(ran, tmp_path_factory):
    there = tmp_path_factory.mktemp("moved")
    shutil.copytree(ran / "run", there / "run")
    shutil.copytree(ran / "data", there / "data")
    (store,) = facts.read(there / "run").stores
    assert store.file == there / "data" / "other.toml"


def test_a_store_without_sizes_says_so(ran):
    with ResultStore.open(
        ran / "run", spec.load(ran / "data" / "other.toml").override(seeds=2)
    ) as it:
        it._db.execute("DROP TABLE fact")
        assert it.facts == {}
    table = provenance_section(facts.read(ran / "run"), "r.md").blocks[0]
    assert ["split", "sizes not recorded"] in table.rows


def test_a_suite_covers_its_experiments_and_their_variants():
    assert SUITE.covers(["mine", "cifar10-lenet-100"])
    assert SUITE.covers(["20newsgroups-mlp"])
    assert not SUITE.covers(["mine", "cifar10-efficientnet"])
