"""What a labelling project remembers of Label Studio is data: it names no code to run."""

import json
import sys

import pytest

from askance.errors import InputError
from askance.integrations import label_studio, label_studio_settings
from askance.label import ItemSource, LabelingOptions, open_session

PAYLOAD = (
    "from pathlib import Path\nPath('mark').write_text('ran')\ndef net(**_): raise RuntimeError\n"
)


class Untouched:
    """A server that must not be spoken to."""

    def __getattr__(self, name):
        raise AssertionError(f"the server was asked for its {name}")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "payload.py").write_text(PAYLOAD)
    texts = tmp_path / "texts.csv"
    texts.write_text("text\n" + "\n".join(f"item {i}" for i in range(20)))
    folder = tmp_path / "project"
    options = LabelingOptions(worker="here", encoder="none")
    open_session(folder, ItemSource(texts, text="text"), ("yes", "no"), options).close()
    note = {
        "url": "",
        "project": 1,
        "title": "t",
        "source": {"text": "text"},
        "options": {"model": "payload:net"},
    }
    (folder / label_studio_settings.FILE).write_text(json.dumps(note))
    return folder


def test_a_network_that_a_file_names_is_not_imported(project, tmp_path):
    with pytest.raises(
        InputError, match=r"names the model 'payload:net', which is code .* say --model"
    ):
        label_studio.push(project, Untouched(), 5)
    assert "payload" not in sys.modules
    assert not (tmp_path / "mark").exists()


def test_an_encoder_that_a_file_names_is_not_imported(project, tmp_path):
    path = project / label_studio_settings.FILE
    note = json.loads(path.read_text()) | {"options": {"encoder": "payload:net"}}
    path.write_text(json.dumps(note))
    with pytest.raises(InputError, match=r"names the encoder 'payload:net', .* say --encoder"):
        label_studio.push(project, Untouched(), 5)
    assert "payload" not in sys.modules
    said = label_studio_settings.Settings(options={"encoder": "payload:net"})
    with pytest.raises(AssertionError, match="the server was asked"):
        label_studio.push(project, Untouched(), 5, settings=said)


def test_one_that_is_said_again_is_taken(project):
    said = label_studio_settings.Settings(options={"model": "payload:net"})
    with pytest.raises(AssertionError, match="the server was asked"):
        label_studio.push(project, Untouched(), 5, settings=said)
