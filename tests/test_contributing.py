"""The workflow, the hooks, the templates and the citation fit the project."""

import re
import tomllib

import pytest
import yaml

from tests.fences import ROOT

PINNED = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
)
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
