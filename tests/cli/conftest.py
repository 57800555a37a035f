"""A command line that runs in this process, and a tiny experiment for it."""

import pytest

from askance.cli import main
from tests.experiments.tiny import written


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Writes a spec whose network can be imported here."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return lambda tail="", **changes: str(written(tmp_path, tail, **changes))


@pytest.fixture
def askance(capsys):
    """(exit code, standard output, standard error) of a command."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call
