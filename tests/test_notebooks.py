"""The notebooks run, from the first cell to the last, and show what they print."""

import json
import re

import matplotlib as mpl
import pytest

from tests.fences import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells(path):
    """The source and the outputs of each code cell."""
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [("".join(cell["source"]), cell["outputs"]) for cell in code]


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == [
        "did_it_help", "image_folder", "texts_from_no_label",
    ]  # fmt: skip


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    mpl.use("Agg")
    names = {}
    for source, outputs in cells(path):
        exec(compile(source, path.name, "exec"), names)
        printed = capsys.readouterr().out
        stored = "".join("".join(o["text"]) for o in outputs if o["output_type"] == "stream")
        # What is computed may differ in its digits on another machine; what is said may not.
        assert re.sub(r"[-+]?[\d.]+", "0", printed) == re.sub(r"[-+]?[\d.]+", "0", stored)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_can_be_read_without_running_it(path):
    shown = [output for _, outputs in cells(path) for output in outputs]
    assert len(shown) >= 4
    assert not [output for output in shown if output["output_type"] == "error"]
    assert any({"text/html", "image/png"} & set(output.get("data", ())) for output in shown)
    text = path.read_text()
    assert len(text) < 200_000
    for target in re.findall(r"\]\((\.\./[^)#]+)", text):
        assert (path.parent / target).exists(), target
