"""The report: self-contained, honest about what it lacks, and the same in both forms."""

import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

from askance import report
from askance.cli import main
from askance.errors import DataError, StoreError, UnknownError
from askance.experiments import export, spec
from askance.experiments.statistics.resample import FEWEST
from askance.experiments.statistics.suite import Suite
from askance.experiments.store import ResultStore
from askance.paper import SUITE
from askance.report import facts, formatting, repeat
from askance.report.elements import PickedItem, PickedItems
from askance.report.html import _picks as html_picks
from askance.report.markdown import plain
from askance.report.picks import _pick
from tests.experiments.statistics.worlds import noise, rows
from tests.report import worlds


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.tags, self.alts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        values = dict(attributes)
        self.targets += [values[k] for k in ("src", "href", "srcset", "action") if k in values]
        if values.get("class") == "figure":
            self.alts.append(values["alt"])


@pytest.fixture
def undrawn(monkeypatch):
    """Figures left blank: drawing takes time, and these tests look at words."""
    monkeypatch.setattr("askance.figures.lazy.LazyFigure.svg", b"<svg/>")
    monkeypatch.setattr("askance.report.markdown._saved", lambda picture, files: files / "a.svg")


def page_of(sources, folder, name="r.html"):
    """The text of a report of some stores and exports, written into a folder."""
    return report.write(sources, folder / name).read_text()


@pytest.fixture
def empty(monkeypatch):
    """Figures put together and saved, each file with its format's name for all content."""
    monkeypatch.setattr("askance.figures.style.render", lambda figure, format: format.encode())


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A finished store, and its report."""
    folder = tmp_path_factory.mktemp("small")
    worlds.store(folder, lifts={"grad": 0.1})
    report.write(report.read(folder, SUITE), folder / "report.html")
    return folder


@pytest.fixture(scope="module")
def page(small):
    return (small / "report.html").read_text()


def test_nothing_is_loaded_from_elsewhere(page):
    links = Links(page)
    assert all(link.startswith(("data:", "#")) for link in links.targets)
    assert "script" not in links.tags
    assert "@import" not in page
    assert re.findall(r"url\(", page.split("</style>")[0]) == []
    assert "default-src &#x27;none&#x27;" in page


def test_the_verdict_comes_first_and_every_section_is_there(page):
    anchors = re.findall(r'<section id="(\w+)">', page)
    assert anchors == [
        "verdict",
        "curves",
        "wins",
        "across",
        "thirds",
        "picks",
        "cost",
        "training",
        "classes",
        "runs",
        "provenance",
    ]
    assert all(f'href="#{anchor}"' in page for anchor in anchors)
    assert "grad beats random by" in page


def test_figures_say_in_words_what_they_show(page):
    alts = Links(page).alts
    assert len(alts) == 9
    assert all(alts)
    assert any("Loss scores: " in alt for alt in alts)


def test_picks_are_shown_with_their_answers(page):
    picks = page.split('id="picks"')[1].split("</section>")[0]
    assert picks.count("data:image/png") == 6 * 8
    assert all(f"</span>{rule}</h4>" in picks for rule in worlds.RULES)
    assert "same model" in picks


def test_runs_and_provenance(page):
    runs = page.split('id="runs"')[1].split("</section>")[0]
    assert runs.count("<tr>") == 1 + 6 * 5
    end = page.split('id="provenance"')[1]
    assert "askance run small.toml --out" in end
    assert "askance report" in end
    assert "the best on validation" in end
    assert "scikit-learn" in end


def test_p_values_near_the_line_say_on_which_side():
    assert formatting.p_value(0.0502) == "0.0502"
    assert formatting.p_value(0.0498) == "0.0498"
    assert formatting.p_value(0.084) == "0.084"
    assert formatting.p_equals(0.0001) == "p < 0.001"
    assert formatting.points(-0.0004) == "0.0"
    assert formatting.points(0.0123, sign=True) == "+1.2"
    assert formatting.number(-1234.5) == "−1,234"


def test_the_same_store_gives_the_same_page(small, page, tmp_path):
    again = page_of(report.read(small, SUITE), tmp_path)
    strip = re.compile(r"askance report .*?</code>")
    assert strip.sub("", again) == strip.sub("", page)


@pytest.mark.usefixtures("undrawn")
def test_a_subset_is_shown_first(tmp_path):
    worlds.store(tmp_path, subset="1,000 of 1,797 images")
    page = page_of(tmp_path, tmp_path)
    assert '<p class="warning">' in page
    assert page.index("1,000 of 1,797 images") < page.index('id="verdict"')
    markdown = page_of(tmp_path, tmp_path, "r.md")
    assert markdown.index("1,000 of 1,797 images") < markdown.index("## Verdict")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("spec", "text"),
    [(worlds.spec(), "30 of 30 runs lack"), (worlds.spec(["grad"], seeds=1), "1 of 1 run lacks")],
)
def test_an_unfinished_store_says_so(spec, text, tmp_path):
    worlds.store(tmp_path, spec, done=2)
    assert f"small is unfinished: {text} rounds" in page_of(tmp_path, tmp_path)


def test_runs_that_are_the_same_in_every_seed_are_told(tmp_path):
    once = {"random": [[0.5, 0.6, 0.7], [0.5, 0.61, 0.7]], "margin": [[0.5, 0.7, 0.8]] * 2}
    export.write(rows(once), "csv", tmp_path / "made.csv")
    page = page_of(tmp_path / "made.csv", tmp_path)
    assert "In made every seed gives the same run of margin: it is one run" in page
    export.write(rows(once | {"margin": once["random"]}), "csv", tmp_path / "made.csv")
    assert "every seed gives the same run" not in page_of(tmp_path / "made.csv", tmp_path)


def test_a_store_with_round_0_alone(tmp_path):
    worlds.store(tmp_path, worlds.spec(("random", "grad"), seeds=2), done=1)
    page = page_of(tmp_path, tmp_path)
    assert "Too few seeds for tests, which need 5, in small." in page
    assert "Nothing that a rule chose has been trained on yet, so rules cannot differ." in page
    assert "0.0 [0.0, 0.0]" not in page
    assert 'id="across"' not in page


@pytest.mark.usefixtures("undrawn")
def test_one_of_a_kind_is_told_in_the_singular(tmp_path):
    worlds.store(tmp_path, worlds.spec(("random", "grad"), seeds=1, rounds=1), lifts={"grad": 0.1})
    page = page_of(tmp_path, tmp_path, "r.md")
    assert "1 seed, grad leads" in page
    assert "8 labels to start, 1 round of as many after it" in page
    assert "1 epoch, batch size" in page
    assert not re.findall(r"\b1 (?!point)\w+s\b", page)
    assert "[–" not in page
    assert r"\[–" not in page


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_an_export_alone_leaves_out_what_it_cannot_know(tmp_path, format):
    export.write(rows(noise(("random", "theirs"))), format, tmp_path / f"theirs.{format}")
    page = page_of(tmp_path, tmp_path)
    assert "there is a table of results alone" in page
    assert "An export does not say what was picked" in page
    assert "There are no times" in page
    assert "theirs" in page


@pytest.mark.usefixtures("undrawn")
def test_stores_and_exports_together(small, tmp_path):
    table = rows(noise(("random", "grad", "theirs"), seed=3), name="other", model="lenet")
    export.write(table, "csv", tmp_path / "other.csv")
    page = page_of([small / "store.sqlite", tmp_path / "other.csv"], tmp_path)
    assert "askance: 2 experiments" in page
    assert "Each experiment by itself" in page
    assert "All rules by backbone" in page
    assert "Wilcoxon" in page
    assert "Of other there is a table of results alone" in page


@pytest.mark.usefixtures("undrawn")
def test_data_that_is_not_here_is_said_and_not_fetched(tmp_path, monkeypatch):
    monkeypatch.delenv("ASKANCE_DATA", raising=False)
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "empty"))
    monkeypatch.setattr("askance.data.remote.official_files", _no_download)
    worlds.store(tmp_path / "store", worlds.spec(dataset="gtsrb", seeds=2))
    page = page_of(tmp_path / "store", tmp_path)
    assert "The data of gtsrb is not at hand" in page
    assert "askance data fetch gtsrb" in page


def _no_download(*args, download, **options):
    assert not download
    raise DataError("not here")


@pytest.mark.usefixtures("undrawn")
def test_other_data_under_the_same_name_is_not_shown(tmp_path):
    worlds.store(tmp_path, worlds.spec(seeds=2), fingerprint="0" * 32)
    page = page_of(tmp_path, tmp_path)
    assert "other data than these runs were made with" in page


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("kind", "answer"), [("noisy", ", in truth "), ("abstaining", "no answer")]
)
def test_an_oracle_is_quoted(kind, answer, tmp_path):
    worlds.store(tmp_path, worlds.spec(seeds=2, oracle={"kind": kind, "rate": 1.0}))
    assert page_of(tmp_path, tmp_path).count(answer) == 6 * 8


def test_hostile_names_are_only_text(tmp_path):
    evil = "<script>alert(1)</script>|`*[x](javascript:y)"
    table = rows(noise(("random", evil)), name=evil, dataset=evil, model='"><img src=x>')
    export.write(table, "csv", tmp_path / "evil.csv")
    page = page_of(tmp_path / "evil.csv", tmp_path)
    links = Links(page)
    assert "script" not in links.tags
    assert all(link.startswith(("data:", "#")) for link in links.targets)
    markdown = page_of(tmp_path / "evil.csv", tmp_path, "r.md")
    assert "<script>" not in markdown.replace("\\<", "")
    assert not re.search(r"(?<!\\)\[x\](?!\\)", markdown)
    files = [path.name for path in (tmp_path / "r-files").iterdir()]
    assert all(re.fullmatch(r"[\w.-]+", name) for name in files)


def test_texts_and_rows_are_shown_short_and_escaped():
    pick = _pick("<b>word</b>  and\nmore " * 40, "sci.space", 255)
    assert len(pick.text) == 200
    assert pick.text.endswith("…")
    shown = html_picks(PickedItems("grad", "#000000", [pick]))
    assert "&lt;b&gt;word" in shown
    assert "<b>sci.space</b>" in shown
    assert _pick(np.array([1.0, 0.25]), "A", 255) == PickedItem("A", text="1, 0.25")
    assert _pick(np.arange(20.0), "A", 255).text.endswith("11, …")


def test_colour_and_grey_images_become_thumbnails():
    for item in (np.zeros((100, 80, 3), np.uint8), np.zeros((8, 8), np.uint8)):
        assert _pick(item, "A", 16).image.startswith(b"\x89PNG")


@pytest.mark.usefixtures("empty")
def test_markdown_has_its_pictures_beside_it(small, tmp_path):
    facts = report.read(small, SUITE)
    text = report.write(facts, tmp_path / "report.md").read_text()
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(pictures) == 9 + 6
    assert all((tmp_path / picture).is_file() for picture in pictures)
    files = sorted((tmp_path / "report-files").iterdir())
    assert report.write(facts, tmp_path / "report.md").read_text() == text
    assert sorted((tmp_path / "report-files").iterdir()) == files
    assert "**Active learning helped: grad beats random by" in text
    assert "| rule | mean accuracy |" in text


def test_markdown_text_is_only_text():
    assert plain("a_b*c|d <e>\nf") == r"a\_b\*c\|d \<e\> f"


@pytest.mark.usefixtures("undrawn", "empty")
def test_the_command_line(small, tmp_path, capsys):
    out, figures = tmp_path / "deep" / "r.html", tmp_path / "figures"
    assert main(["report", str(small), "--out", str(out), "--figures", str(figures)]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [f"Report: {out}", f"Figures: {figures}"]
    names = {path.name for path in figures.iterdir()}
    assert {"extended-penalty-rounds.svg", "extended-penalty-rounds.png", "curves-small.svg",
            "profile.png", "timing-small.svg"} < names  # fmt: skip
    assert "paper-penalty-rounds.svg" not in names
    assert all(path.read_text() == path.suffix[1:] for path in figures.iterdir())


@pytest.mark.usefixtures("undrawn")
def test_the_format_follows_the_name_or_is_named(small, tmp_path):
    assert main(["report", str(small), "--out", str(tmp_path / "a"), "--format", "md"]) == 0
    assert (tmp_path / "a").read_text().startswith("# askance: small")
    with pytest.raises(UnknownError, match="known: html, md"):
        report.write(small, tmp_path / "b", format="pdf")


@pytest.mark.usefixtures("undrawn")
def test_a_folder_gets_a_report_in_it(small, tmp_path):
    assert report.write(small, tmp_path) == tmp_path / "report.html"
    assert report.write(small, tmp_path, format="md") == tmp_path / "report.md"


@pytest.mark.usefixtures("undrawn")
def test_what_cannot_be_written_or_found_is_an_error(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        report.write(small, tmp_path / "file" / "r.html")
    with pytest.raises(DataError, match="no such folder"):
        report.write(small, tmp_path / "r.html", data_dir=tmp_path / "none")


def test_nothing_there_is_an_error(tmp_path, capsys):
    with pytest.raises(StoreError, match="no rounds at"):
        report.write(tmp_path, tmp_path / "r.html")
    assert main(["report", str(tmp_path)]) == 3
    told = capsys.readouterr().err
    assert "expected stores that have finished a round" in told
    assert "to export" not in told
    assert main(["report", str(tmp_path / "none")]) == 3


def test_a_shipped_experiment_is_repeated_by_name(tmp_path):
    wanted = spec.load("digits").override(strategies=["random", "grad"], seeds=2, rounds=3)
    worlds.store(tmp_path, wanted)
    (store,) = facts.read(tmp_path).stores
    expected = f"askance run digits --strategies random,grad --seeds 2 --rounds 3 --out {tmp_path}"
    assert repeat.repeat(store) == repeat.Repeat(expected)


def test_any_other_is_repeated_by_a_file_that_is_the_same_spec(tmp_path):
    wanted = worlds.spec(
        [{"name": "powergrad", "beta": 1.0, "grad": {"bias": False}}, "random"],
        oracle={"kind": "noisy", "rate": 0.1},
        model_options={"hidden": [32, 16]},
    )
    with ResultStore.open(tmp_path / "store", wanted):
        pass
    worlds.store(tmp_path / "store", wanted)
    (store,) = facts.read(tmp_path / "store").stores
    again = repeat.repeat(store)
    assert again.command.startswith("askance run small.toml --out ")
    assert again.how == "To run it again, save the file above as small.toml and run:"
    (tmp_path / "small.toml").write_text(again.file)
    assert spec.load(tmp_path / "small.toml") == wanted


def test_seconds_of_one_experiment_in_two_stores_are_one_and_a_copy_adds_nothing(small, tmp_path):
    alone = facts.read(small).seconds
    assert set(alone["small"]) == set(worlds.RULES)
    assert {len(each) for each in alone["small"].values()} == {5 * 4}  # seeds and acquisitions
    shutil.copytree(small, tmp_path / "copy")
    assert facts.read([small, tmp_path / "copy"]).seconds == alone
    worlds.store(tmp_path / "more", worlds.spec(["egl"], seeds=2))
    both = facts.read([small, tmp_path / "more"])
    assert both.seconds["small"].keys() == {*worlds.RULES, "egl"}
    assert [name for name in both.figures if "timing" in name] == ["timing-small"]


def test_figures_of_tests_need_as_many_seeds_as_the_page(tmp_path):
    worlds.store(tmp_path / "few", worlds.spec(seeds=FEWEST - 1))
    worlds.store(tmp_path / "enough", worlds.spec(seeds=FEWEST, name="enough"))
    few, both = facts.read(tmp_path / "few"), facts.read(tmp_path)
    assert "curves-small" in few.figures
    assert not [name for name in few.figures if "penalty" in name]
    assert [name for name in both.figures if "penalty" in name]


@pytest.mark.usefixtures("undrawn")
def test_the_rules_of_a_suite_come_first_and_have_matrices_of_their_own(small, tmp_path):
    suite = Suite("mine", "My rules", "Mine are these.", rules=("grad", "badge"))
    facts = report.read(small, suite)
    text = report.write(facts, tmp_path / "r.md").read_text()
    assert facts.methods == ("grad", "badge", "entropy", "kcenter", "powergrad", "random")
    assert facts.experiments[0].methods == facts.methods
    assert "Mine are these." in text
    assert text.index("My rules: 1 pair in") < text.index("All rules: 15 pairs in")
    assert {"mine-penalty-rounds", "extended-penalty-rounds"} < set(facts.figures)
    plain = report.write(small, tmp_path / "plain.md").read_text()
    assert plain.count("pairs in the correction") == 1
    assert not {"My rules", "The paper", "Mine are these."} & set(plain.split("\n"))
    assert report.read(small).methods[:3] == ("random", "badge", "entropy")


@pytest.mark.usefixtures("undrawn")
def test_a_report_of_facts_is_that_of_their_paths(small, tmp_path):
    assert page_of(report.read(small), tmp_path) == page_of(small, tmp_path)


def test_stores_are_found_once(small, tmp_path):
    stores = export.stores([small, small / "store.sqlite", small])
    assert stores == [small / "store.sqlite"]
