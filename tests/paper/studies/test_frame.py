"""What every study shares: the files it writes, the figure, the command."""

import json
import os
import re
import sys
import xml.etree.ElementTree
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path

import matplotlib
import pytest

from askance import cli
from askance.errors import DataError, InputError, UnknownError
from askance.paper import studies
from tests.paper.studies.tiny import OPTIONS, tiny

NAMES = ["geometry", "shift", "contraction", "cost", "reference", "labels", "grand", "theory"]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    for name in NAMES:
        monkeypatch.setitem(studies.STUDIES, name, tiny(name))


def test_all_are_there():
    assert studies.names() == NAMES == list(OPTIONS)


def test_the_page_and_the_command_list_every_study(capfd):
    page = (Path(__file__).parents[3] / "docs" / "studies.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == NAMES
    assert re.findall(r"^## (\w+)", page, re.MULTILINE) == NAMES
    assert cli.main(["paper", "study", "--help"]) == 0
    told = capfd.readouterr().out
    assert all(name in told for name in NAMES)


def test_quick_and_full_differ_in_options_alone():
    for study in map(studies.get, NAMES):
        assert is_dataclass(study.full)
        assert type(study.full) is type(study.quick)
        assert "seed" in {field.name for field in fields(study.full)}


@pytest.mark.parametrize("name", NAMES)
def test_a_study_writes_data_figure_and_findings(name, tmp_path):
    before = dict(matplotlib.rcParams)
    backend = matplotlib.get_backend()
    steps = []
    report = studies.conduct(name, tmp_path / "out", seed=3, device="cpu", say=steps.append)
    assert sorted(path.name for path in report.files) == sorted(
        f"{name}.{kind}" for kind in ("json", "png", "svg", "md")
    )
    record = json.loads((tmp_path / "out" / f"{name}.json").read_text())
    assert (record["study"], record["result"]["options"]["seed"]) == (name, 3)
    page = (tmp_path / "out" / f"{name}.md").read_text()
    assert report.findings in page
    assert report.table.markdown() in page
    assert f"({name}.png)" in page
    assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    xml.etree.ElementTree.parse(tmp_path / "out" / f"{name}.svg")
    assert "nan" not in report.findings
    assert steps
    assert dict(matplotlib.rcParams) == before
    assert matplotlib.get_backend() == backend
    assert all(len(row) == len(report.table.columns) for row in report.table.rows)
    study, result = studies.read(tmp_path / "out" / f"{name}.json")
    assert study is studies.get(name)
    assert isinstance(result, study.result)
    assert studies.findings(study, result) == report.findings
    assert json.loads(json.dumps(asdict(result))) == record["result"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a study's data"),
        ("[]", "not a study's data"),
        ('{"study": "cost"}', "not a study's data"),
        ('{"study": "nothing", "result": {}}', "unknown study 'nothing'"),
        ('{"study": "cost", "result": {"odd": 1}}', "not a result of this version"),
        ('{"study": "cost", "result": 3}', "not a result of this version"),
    ],
)
def test_what_is_no_result_is_refused(text, message, tmp_path):
    (tmp_path / "cost.json").write_text(text)
    with pytest.raises(DataError, match=message):
        studies.read(tmp_path / "cost.json")


def test_a_shortened_form_says_so():
    study = studies.get("contraction")
    result = study.run(study.quick, studies.Lab())
    assert "Not the full form" not in studies.findings(study, result)
    longer = replace(study, full=replace(study.full, epochs=150, datasets=("digits", "german")))
    assert studies.findings(longer, result).endswith(
        "Not the full form: datasets (digits) for (digits, german), epochs 4 for 150."
    )


def test_the_same_result_gives_the_same_files(tmp_path):
    study = tiny("contraction")
    result = study.run(study.quick, studies.Lab())
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        studies.write(study, result, tmp_path / name, form="quick", seconds=1.0, device="cpu")
    for kind in ("json", "png", "svg", "md"):
        a, b = ((tmp_path / x / f"contraction.{kind}").read_bytes() for x in ("a", "b"))
        assert a == b, kind


def test_an_unknown_study_is_told_the_known_ones(tmp_path, capfd):
    with pytest.raises(UnknownError, match="did you mean 'geometry'"):
        studies.get("geometri")
    assert cli.main(["paper", "study", "geometri"]) == 2
    assert "unknown study 'geometri'" in capfd.readouterr().err


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write into"):
        studies.conduct("reference", tmp_path / "file")


def test_a_device_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="the device 'warp' cannot be used here"):
        studies.conduct("reference", tmp_path, device="warp")


def test_the_command_writes_and_prints(tmp_path, capfd):
    arguments = [
        "paper",
        "study",
        "reference",
        "--quick",
        "--out",
        str(tmp_path),
        "--device",
        "cpu",
    ]
    assert cli.main(arguments) == 0
    told = capfd.readouterr()
    assert "quick form" in told.out
    assert "Spearman" in told.out
    assert "reference.json" in told.out
    assert "round 1" in told.err
    assert cli.main([*arguments, "--json"]) == 0
    told = capfd.readouterr()
    report = json.loads(told.out)
    assert (report["study"], report["form"]) == ("reference", "quick")
    assert len(report["files"]) == 4
    assert told.err == ""


def test_missing_data_is_told_with_what_to_do(tmp_path, monkeypatch, capfd):
    monkeypatch.delenv("ASKANCE_DATA", raising=False)
    arguments = ["paper", "study", "geometry", "--data-dir", str(tmp_path / "nowhere"), "--out"]
    monkeypatch.setitem(
        studies.STUDIES, "geometry", studies.Study(**vars(tiny("geometry")) | _of("mnist"))
    )
    assert cli.main([*arguments, str(tmp_path)]) == 2
    assert "data_dir and ASKANCE_DATA must name folders" in " ".join(capfd.readouterr().err.split())


def _of(dataset):
    options = replace(OPTIONS["geometry"], dataset=dataset)
    return {"full": options, "quick": options}


def test_drawing_needs_no_pyplot():
    """A study's figure opens no window and keeps no figure alive behind the user's back."""
    study = tiny("contraction")
    result = study.run(study.quick, studies.Lab())
    open_before = _open_figures()
    study.draw(result)
    assert _open_figures() == open_before


def _open_figures():
    pyplot = sys.modules.get("matplotlib.pyplot")
    return [] if pyplot is None else pyplot.get_fignums()


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("ASKANCE_DATA"),
    reason="REAL DATA NOT TESTED: set ASKANCE_DATA to a folder with the compact copies",
)
@pytest.mark.parametrize("name", NAMES)
def test_the_quick_form_on_real_data(name, tmp_path, monkeypatch):
    monkeypatch.undo()
    report = studies.conduct(name, tmp_path, quick=True, device="cpu")
    assert len(report.files) == 4
