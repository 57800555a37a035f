"""A published folder: its page, its figures, and what is refused."""

import re
from base64 import b64encode

import pytest

from askance.cli import main
from askance.errors import DataError, StoreError
from askance.experiments import export
from askance.figures import catalog
from askance.figures.curves import learning_curves
from askance.paper import claims, studies
from tests.experiments.statistics.worlds import noise, rows
from tests.paper.claims.worlds import timed
from tests.report import worlds


@pytest.fixture
def folder(tmp_path):
    """Two small stores under names of the suite."""
    for seed, name in enumerate(("cifar10-lenet", "svhn-lenet")):
        wanted = worlds.spec(("random", "grad"), seeds=2, rounds=2, name=name, model="mlp")
        worlds.store(tmp_path / name, wanted, {"grad": 0.1}, seed, subset="half of it")
    return tmp_path


def test_publishing_writes_the_page_and_every_figure(folder, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        catalog, "learning_curves", lambda one: drawn.append(one.name) or learning_curves(one)
    )
    (folder / "notes.txt").write_text("## Subsets\n\nOnly half.\n")
    assert main(["paper", "publish", str(folder)]) == 0
    assert capsys.readouterr().out == f"Published: {folder}\n"
    page = (folder / "RESULTS.md").read_text()
    assert "half of it" in page
    assert page.endswith("## Subsets\n\nOnly half.\n")
    pictures = {path.name for path in (folder / "figures").iterdir()}
    assert {"gains.png", "curves-cifar10-lenet.svg", "paper-curves-appendix.svg"} <= pictures
    assert [name for name in pictures if name.endswith("png")] == ["gains.png"]
    assert drawn == ["cifar10-lenet", "svhn-lenet"]
    for name in ("curves-svhn-lenet", "timing-cifar10-lenet", "profile", "ranks"):
        assert (folder / "figures" / f"{name}.svg").read_bytes().endswith(b"</svg>\n")
    before = {path: path.read_bytes() for path in (folder / "figures").iterdir()}
    (folder / "figures" / "gains.png").unlink()
    assert main(["paper", "publish", str(folder)]) == 0  # and the same again
    assert (folder / "RESULTS.md").read_text() == page
    assert {path: path.read_bytes() for path in (folder / "figures").iterdir()} == before


def test_a_report_has_the_figures_that_are_published_and_publishes_nothing(folder):
    claims.publish(folder)
    before = (folder / "RESULTS.md").read_text()
    (folder / "notes.txt").write_text("later")
    assert main(["report", str(folder), "--out", str(folder / "r.html")]) == 0
    assert (folder / "RESULTS.md").read_text() == before
    for name in ("curves-svhn-lenet", "timing-cifar10-lenet", "profile", "ranks"):
        picture = (folder / "figures" / f"{name}.svg").read_bytes()
        assert b64encode(picture).decode() in (folder / "r.html").read_text()


def test_a_page_of_someone_elses_is_left_alone(folder):
    (folder / "RESULTS.md").write_text("mine")
    with pytest.raises(StoreError, match="not written by askance"):
        claims.publish(folder)
    assert not claims.is_published(folder)
    assert (folder / "RESULTS.md").read_text() == "mine"


def test_what_cannot_be_published(tmp_path):
    with pytest.raises(StoreError, match="is no folder"):
        claims.publish(tmp_path / "none")
    export.write(rows(noise(("random", "grad"))), "csv", tmp_path / "a.csv")
    with pytest.raises(StoreError, match="none of the paper's experiments"):
        claims.publish(tmp_path)


def test_figures_of_what_is_gone_go(folder):
    claims.publish(folder)
    pictures = folder / "figures"
    (pictures / "mine.svg").write_text("not of askance")
    before = {path.name for path in pictures.iterdir()}
    for path in (folder / "svhn-lenet").iterdir():
        path.unlink()
    claims.publish(folder)
    after = {path.name for path in pictures.iterdir()}
    assert before - after >= {"curves-svhn-lenet.svg", "timing-svhn-lenet.svg"}
    linked = set(re.findall(r"\(figures/([^)]+)\)", (folder / "RESULTS.md").read_text()))
    assert after == linked | {"mine.svg"}


@pytest.mark.parametrize("name", ["RESULTS.md", "notes.txt"])
def test_text_that_is_no_text(folder, name, capsys):
    (folder / name).write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(StoreError, match=name):
        claims.publish(folder)
    assert main(["paper", "publish", str(folder)]) == 3
    assert name in capsys.readouterr().err
    assert not (folder / "figures").exists()  # known before anything was made


def test_figures_that_cannot_be_written(folder):
    (folder / "figures").write_text("a file")
    with pytest.raises(StoreError, match="cannot write the figures"):
        claims.publish(folder)
    assert not (folder / "RESULTS.md").exists()


def test_a_study_under_another_name_is_not_passed_over(folder):
    made = folder / "studies"
    made.mkdir()
    study = studies.get("cost")
    result = timed({"entropy": 1.0, "kcenter": 2.0})
    studies.write(study, result, made, form="quick", seconds=1.0, device="cpu")
    (made / "cost.json").rename(made / "cost-old.json")
    with pytest.raises(DataError, match=r"call it cost\.json"):
        claims.publish(folder)
