"""The workflow, the hooks, the templates and the citation fit the project."""

import re
import tomllib
from itertools import chain

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.fences import ROOT


def pins(name):
    """What a file of constraints pins: name → version."""
    return dict(line.split("==") for line in (ROOT / name).read_text().splitlines() if "==" in line)


PINNED = pins("constraints.txt")
UNLOCKED = {"accelerate"}  # was not in the environment that the lock was made from
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))


def parsed(name):
    return yaml.safe_load((ROOT / name).read_text())


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def commands(job):
    """What the steps of a job of the workflow run."""
    return [step["run"] for step in job["steps"] if "run" in step]


def test_the_workflow_runs_what_a_contributor_runs(project):
    workflow = parsed(".github/workflows/test.yml")
    test, coverage, docs = (workflow["jobs"][name] for name in ("test", "coverage", "docs"))
    assert commands(test) == ["make test"]
    assert commands(docs) == ["make docs"]
    measure, show = commands(coverage)
    assert measure == "make coverage"
    assert "--format=markdown" in show
    assert "GITHUB_STEP_SUMMARY" in show
    assert {"push", "pull_request"} <= set(workflow[True])  # YAML 1.1 reads the key `on` as true
    for job in (test, coverage, docs):
        (python,) = (s["with"] for s in job["steps"] if "setup-python" in s.get("uses", ""))
        assert python["cache"] == "pip"
    # The versions that are tested are those the package says it works with.
    versions = test["strategy"]["matrix"]["python"]
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(project["project"]["classifiers"]))
    assert versions == declared
    assert project["project"]["requires-python"] == f">={versions[0]}"


def test_the_lock_pins_all_that_is_needed_above_its_floor(project):
    locked = pins("requirements-ci.txt")
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *chain(*extras.values())]
    for text in wanted:
        needed = Requirement(text)
        name = canonicalize_name(needed.name)
        if needed.name == "askance" or text in extras["bench"] + extras["label-studio"]:
            continue  # ourselves, and what continuous integration does not install
        if name in UNLOCKED:
            continue
        assert needed.specifier.contains((locked | PINNED)[name]), text
    assert not locked.keys() & PINNED.keys()
    assert "requirements-ci.txt" in parsed(".github/workflows/test.yml")["env"]["LOCK"]
    assert "$(LOCK)" in (ROOT / "Makefile").read_text()


def test_floors_are_those_that_the_page_on_trust_gives(project):
    extras = project["project"]["optional-dependencies"].values()
    given = [Requirement(text) for text in [*project["project"]["dependencies"], *chain(*extras)]]
    floors = {each.name: str(each.specifier) for each in given}
    rows = re.findall(
        r"^\| ([a-z0-9]+)(?: \(tests\))? \| ([\d.]+) \| ",
        (ROOT / "docs" / "security.md").read_text(),
        flags=re.MULTILINE,
    )
    assert len(rows) == 8
    assert {name: f">={least}" for name, least in rows}.items() <= floors.items()


def test_the_hooks_use_the_ruff_of_make_lint():
    repos = {
        each["repo"].rsplit("/", 1)[1]: each for each in parsed(".pre-commit-config.yaml")["repos"]
    }
    assert repos["ruff-pre-commit"]["rev"] == f"v{PINNED['ruff']}"
    hooks = {hook["id"] for each in repos.values() for hook in each["hooks"]}
    assert {"ruff-check", "ruff-format", "end-of-file-fixer", "check-merge-conflict"} <= hooks
    assert "check-added-large-files" in hooks


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_has_what_the_list_of_templates_shows(path):
    _, front, body = path.read_text().split("---\n", 2)
    assert {"name", "about"} <= yaml.safe_load(front).keys()
    assert body.strip()


def test_there_is_a_template_for_each_kind_of_issue():
    assert [path.stem for path in TEMPLATES] == ["bug", "feature", "rule"]
    assert "make test" in (ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md").read_text()


def test_the_citation_has_what_the_format_requires(project):
    citation = parsed("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()  # required by 1.2.0
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["title"] == project["project"]["name"]
    assert citation["license"] == project["project"]["license"]
    assert citation["authors"] == project["project"]["authors"]
    assert "version" not in citation  # `askance.__version__` is the one place
    (paper,) = citation["references"]
    assert paper["title"].startswith("Gradient-Discrepancy Acquisition")
    assert [author["family-names"] for author in paper["authors"]] == ["Khosravani", "Zilles"]


def test_coverage_is_measured_by_its_own_command_alone(project):
    settings = project["tool"]["coverage"]["run"]
    assert settings["source"] == ["askance"]
    assert settings["branch"]
    assert "--cov" not in project["tool"]["pytest"]["ini_options"]["addopts"]
    targets = re.split(r"^(?=[\w-]+:)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert [each.split(":")[0] for each in targets if "--cov " in each] == ["coverage"]
