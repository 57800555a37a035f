"""What is shipped: a wheel with everything in it and nothing else, and an import that is quick."""

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import askance
from askance import cli
from askance.experiments import spec
from askance.experiments.machine import code_version

ROOT = Path(__file__).parents[1]

# What `import askance` has no use for. Each costs a tenth of a second or more.
LATE = [
    "PIL", "fastapi", "label_studio_sdk", "lightning", "matplotlib", "mlflow", "pandas", "pooch",
    "pyarrow", "ray", "rich", "scipy", "skactiveml", "sklearn", "skorch", "tensorboard",
    "transformers", "typer", "uvicorn",
]  # fmt: skip

SMOKE = """
import askance, torch
layers = torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(8, 3)
model = torch.nn.Sequential(*layers)
X, y = torch.randn(12, 4), torch.randint(3, (12,))
for rule in askance.strategies.names():
    asked = askance.committee(model) if "bald" in rule else model
    assert len(askance.select(asked, (X, y), torch.randn(50, 4), 5, strategy=rule).indices) == 5
print(askance.__file__)
"""


def built(folder, kind):
    """The path of a distribution, made by the build backend itself."""
    code = f"import sys; from hatchling import build; print(build.build_{kind}(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return folder / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(tmp_path_factory.mktemp("wheel"), "wheel")


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name for name in names if name.endswith("entry_points.txt"))
        entries = archive.read(info).decode()
    within = {name.removeprefix("askance/") for name in names if name.startswith("askance/")}
    here = ROOT / "src" / "askance"
    expected = {
        path.relative_to(here).as_posix()
        for path in here.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert within == expected
    assert "py.typed" in within
    for name in spec.names():
        folder = "paper/experiments"
        if spec.load(name).encoder is not None:
            folder = "experiments/pretrained"
        elif name == "digits":
            folder = "experiments/shipped"
        assert f"{folder}/{name}.toml" in within
    assert {name.split("/")[0] for name in names} == {
        "askance",
        f"askance-{askance.__version__}.dist-info",
    }
    assert "askance = askance.cli:entry" in entries
    assert "skactiveml = askance.integrations.skactiveml:strategy_class" in entries


def test_the_sdist_can_be_built_and_tested_from(tmp_path):
    with tarfile.open(built(tmp_path, "sdist")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("pyproject.toml", "src/askance/__init__.py", "tests/conftest.py", "README.md",
                   "LICENSE", "docs/design.md", "examples/demo.py", "constraints.txt"):  # fmt: skip
        assert needed in names
    assert not any(name.startswith((".git/", "results/", ".venv")) for name in names)


def test_the_version_is_written_once(wheel, capsys):
    """In `askance.__version__`; the build, the command line and the stores read it there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"askance-{askance.__version__}.dist-info/METADATA").decode()
    assert f"\nVersion: {askance.__version__}\n" in metadata
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"askance {askance.__version__}\n"
    assert code_version().partition("+")[0] == askance.__version__


def test_the_store_needs_no_installed_version(monkeypatch):
    """What is installed may be another copy than what runs."""

    def absent(name):
        raise AssertionError(f"asked for the installed version of {name}")

    monkeypatch.setattr("askance.experiments.machine.version", absent)
    code_version.cache_clear()
    assert code_version().startswith(f"{askance.__version__}+")


def test_import_brings_in_nothing_it_does_not_need():
    code = f"""
import json, sys, torch
torchs = set(sys.modules)

def brought(unwanted):
    return sorted(set(unwanted) & (sys.modules.keys() - torchs))

import askance
found = [brought({LATE})]
import askance.cli, askance.data  # at the start of every command, and of its workers
found.append(brought(["matplotlib", "pooch", "scipy.stats", "sklearn"]))
import askance.experiments.statistics.penalty, askance.experiments.statistics.power
import askance.experiments.statistics.ranks
found.append(brought(["matplotlib"]))  # statistics draw nothing
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], [], []]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_installs_into_an_empty_environment_and_works(kind, tmp_path):
    """Takes minutes and the network: torch and all are installed anew."""
    made = built(tmp_path, kind)
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    limits = ["--constraint", str(ROOT / "constraints.txt")]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(*command):
        done = subprocess.run(
            list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(python, "-m", "pip", "install", "--quiet", *limits, made)
    assert str(tmp_path / "env") in run(python, "-c", SMOKE)
    command = python.with_name("askance")
    assert askance.__version__ in run(command, "--version")
    assert "digits" in run(command, "list", "experiments")
    out = run(command, "run", "digits", "--seeds", 1, "--rounds", 1, "--strategies", "random,grad")
    assert "Store:" in out
    assert (tmp_path / "runs" / "digits" / "store.sqlite").is_file()


def test_modules_can_be_named_without_an_import_of_their_own():
    names = "data encoders testing report experiments figures tracking integrations.sklearn pools"
    lines = [f"assert askance.{name}.__name__ == 'askance.{name}'" for name in names.split()]
    code = [
        "import sys, askance",
        "assert 'askance.report' not in sys.modules",
        *lines,
        "assert not hasattr(askance, 'reports')",
        "assert not hasattr(askance.integrations, 'x')",
    ]
    start = [sys.executable, "-c", "\n".join(code)]
    done = subprocess.run(start, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
