"""Whatever a file says, what is written has one name of its own in the folder that was asked for."""

import json
import re
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from askance import report
from askance._io.filenames import file_name, is_safe
from askance.cli import main
from askance.experiments import export, formats
from askance.experiments.spec import names
from askance.figures import style
from askance.paper import claims
from tests.experiments.statistics.worlds import noise, rows

DEVICES = ["con", "PRN", "aux.txt", "NUL", "com1", "LPT9.tar.gz", "com0"]
EVIL = [
    "../../x", "..", ".", "", "/etc/x", "a/b", "a\\b", "C:x", "~/x", ".hidden", "-rf", "x.", "x ", " x",
    "nul\0x", "line\nbreak", "x.svg", "x.png", "x.png.svg", "é", "日本語", "\ud800", "A", "a" * 300,
    "x--" + "0" * 32, *DEVICES,
]  # fmt: skip
TEXTS = st.one_of(
    st.text(),
    st.text(alphabet=st.characters(), max_size=4),  # lone surrogates as well
    st.text(alphabet="aAbB./\\-~ \0", max_size=5),
    st.sampled_from(EVIL),
)


@given(TEXTS)
def test_any_text_becomes_one_name_in_the_folder(text):
    name = file_name(text)
    for path in (PurePosixPath("folder") / name, PureWindowsPath("folder") / name):
        assert path.parts == ("folder", name)
    assert re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?", name)
    assert len(name) <= 100
    assert name.partition(".")[0].lower() not in {"con", "prn", "aux", "nul", "com1", "lpt9"}
    assert file_name(text) == name


@given(TEXTS, TEXTS)
@example("A", "a")
@example("../../x", "x")
@example("é", "e\u0301")  # which some file systems take for one
@example("a b", "a-b")
@example("x" * 300, "x" * 301)
@example("", "name")
@example("../x", file_name("../x"))
@example("CON", "con")
def test_two_texts_never_have_one_file(one, other):
    if one != other:
        assert file_name(one).casefold() != file_name(other).casefold()


@given(st.from_regex(r"[a-z0-9]([a-z0-9_.-]{0,98}[a-z0-9_-])?", fullmatch=True).filter(is_safe))
@example("digits")
@example("curves-cifar10-lenet")
@example("x--0")
def test_a_safe_name_stays_as_it_is(name):
    assert file_name(name) == name


def test_what_is_safe():
    assert [text for text in EVIL if is_safe(text)] == [
        "x.svg",
        "x.png",
        "x.png.svg",
        "A",
        "x--" + "0" * 32,
    ]
    assert all(map(is_safe, names()))


def test_published_figures_keep_their_names():
    published = Path(__file__).parents[2] / "results" / "paper" / "figures"
    stems = [path.stem for path in published.iterdir()]
    assert stems
    assert [file_name(stem) for stem in stems] == stems


@pytest.mark.parametrize("ending", ["", ".svg", ".png"])
def test_a_figure_loses_one_ending_alone(tmp_path, ending):
    written = style.save(style.new_figure(1, 1), tmp_path / f"curves.png{ending}", ("svg",))
    assert written == [tmp_path / ("curves.svg" if ending == "" else "curves.png.svg")]


def everything(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.fixture
def plain_drawings(monkeypatch):
    """Figures whose contents are not looked at."""
    for place in ("learning_curves", "penalty", "profiles", "critical_difference"):
        monkeypatch.setattr(
            f"askance.figures.catalog.{place}", lambda *_, **__: style.new_figure(1, 1)
        )
    monkeypatch.setattr(
        "askance.report.comparisons.draw_penalty", lambda *_: style.new_figure(1, 1)
    )


def written_rows(path, experiments):
    """An export of experiments of these names."""
    table = [
        replace(row, experiment=name)
        for name in experiments
        for row in rows(noise(("random", "grad"), seeds=2, rounds=2))
    ]
    path.write_bytes(formats.render(table, path.suffix.removeprefix(".")))
    assert {row.experiment for row in export.table(path)} == set(experiments)
    return path


SAID = [text for text in EVIL if text and text != "\ud800"]


def test_figures_stay_in_their_folder_one_each(tmp_path, plain_drawings, capsys):
    source = written_rows(tmp_path / "evil.json", SAID)
    inside = tmp_path / "a" / "b" / "figures"
    before = everything(tmp_path)
    page = tmp_path / "a" / "b" / "r.html"
    assert main(["report", str(source), "--out", str(page), "--figures", str(inside)]) == 0
    new = everything(tmp_path) - before
    found = sorted(path.name for path in inside.iterdir())
    assert new == {"a", "a/b", "a/b/r.html", "a/b/figures"} | {f"a/b/figures/{f}" for f in found}
    curves = [name for name in found if name.startswith("curves")]
    assert len(curves) == 2 * len(SAID)
    assert len({name.casefold() for name in found}) == len(found)


def test_a_markdown_report_links_each_picture(tmp_path, plain_drawings):
    source = written_rows(tmp_path / "evil.json", SAID)
    page = report.write(source, tmp_path / "r.md").read_text()
    linked = re.findall(r"\]\((r-files/[^)]+)\)", page)
    assert len([path for path in linked if "curves" in path]) == len(SAID)
    assert len(set(linked)) == len(linked)
    for path in linked:
        assert (tmp_path / path).is_file()
    assert everything(tmp_path) == {"evil.json", "r.md", "r-files"} | {
        f"r-files/{path.name}" for path in (tmp_path / "r-files").iterdir()
    }


def test_publishing_stays_in_its_folder(tmp_path, plain_drawings, monkeypatch):
    monkeypatch.setattr("askance.paper.claims.gains", lambda *_: style.new_figure(1, 1))
    folder = tmp_path / "deep" / "results"
    folder.mkdir(parents=True)
    written_rows(folder / "evil.json", [*SAID, "svhn-lenet"])
    claims.publish(folder)
    assert everything(tmp_path) - {"deep", "deep/results"} == {
        f"deep/results/{path}" for path in everything(folder)
    }
    page = (folder / "RESULTS.md").read_text()
    linked = set(re.findall(r"\((figures/[^)]+)\)", page))
    assert linked == {path for path in everything(folder) if path.startswith("figures/")}
    assert len([path for path in linked if "/curves" in path]) == len(SAID) + 1
    # What is gone goes, and nothing else, whatever the page says.
    (folder / "figures" / "mine").mkdir()
    links = "(figures/..) (figures/mine) (figures/../evil.json) (figures/sub/x.svg)"
    (folder / "RESULTS.md").write_text(page + links)
    written_rows(folder / "evil.json", ["svhn-lenet"])
    claims.publish(folder)
    left = {path for path in everything(folder) if "/curves" in path}
    assert left == {"figures/curves-svhn-lenet.svg"}
    assert (folder / "figures" / "mine").is_dir()
    assert (folder / "evil.json").is_file()


def test_a_name_that_is_no_text_is_refused(tmp_path):
    table = json.loads(formats.render(rows(noise(("random", "grad"))), "json"))
    table[0]["experiment"] = "\ud800"
    (tmp_path / "a.json").write_text(json.dumps(table))
    with pytest.raises(ValueError, match="row 1, column experiment: expected a name, got"):
        export.table(tmp_path / "a.json")
