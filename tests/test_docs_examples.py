"""Every example of every page is run, or says why it is not."""

import pytest
import torch

from tests.fences import PAGES, Folder, fences, name_of

SKIPPED = 17


def run(page, path):
    """The folder after every fence of the page."""
    with Folder(path).entered() as folder:
        for fence in fences(page):
            folder.do(fence)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        run(page, tmp_path)


def test_few_examples_are_not_run_and_each_says_why():
    skipped = [fence for page in PAGES for fence in fences(page) if fence.skip is not None]
    listed = "\n".join(f"{fence.where}: {fence.skip}" for fence in skipped)
    assert all(len(fence.skip) > 10 for fence in skipped), f"a reason, please:\n{listed}"
    assert len(skipped) <= SKIPPED, f"too many examples are not run:\n{listed}"


def page(tmp_path, text):
    """A page outside the repository, and its fences."""
    file = tmp_path / "page.md"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\n1 / 0\n```\n", "division by zero"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "shown to print"),
        ("```console\n$ askance list rules\n```\n", "unknown kind"),
        ("```console\n$ askance list models\nresnet19\n```\n", "shown to print"),
        ("```console\n$ curl example.org\n```\n", "is not run here"),
        ("```sh\naskance run\n```\n", "neither run nor"),
        ('```console skip="hours"\n$ askance run --sedes 3\n```\n', "sedes"),
        ('```console skip="hours"\n$ askance walk\n```\n', "no command askance walk"),
        ('```console skip="hours"\n$ make dmeo\n```\n', "no such target"),
    ],
)
def test_an_example_that_is_wrong_is_caught(text, complaint, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.fences.ROOT", tmp_path)
    (tmp_path / "Makefile").write_text("demo:\n")
    with pytest.raises((AssertionError, ZeroDivisionError), match=complaint):
        run(page(tmp_path, text), tmp_path)


def test_fences_share_names_and_files(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.fences.ROOT", tmp_path)
    text = (
        '```python title="mine.py"\nanswer = 42\n```\n'
        "```python\nimport mine\nx = mine.answer\n```\n"
        "```python\nprint(x, 'and', 'more')\n```\n"
        "```text\n42 ...\n```\n"
    )
    assert run(page(tmp_path, text), tmp_path).names["x"] == 42
