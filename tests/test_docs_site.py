"""The site: built strictly, whole, and loading nothing from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
import typer
import yaml

import askance
from askance import cli, strategies
from askance.strategies import Pointwise, TwoStage
from tests.browser import browser, needs_browser
from tests.fences import ROOT

__all__ = ["browser"]

RULES = ROOT / "docs" / "rules.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site; a warning of any kind fails the build."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    built = subprocess.run(
        [*build, "--config-file", "mkdocs.yml", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


class Loaded(HTMLParser):
    """The addresses that a browser fetches to show a page; links are not among them."""

    def __init__(self, text):
        super().__init__()
        self.sources = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed"):
            self.sources.append(values.get("src"))
        if tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            self.sources.append(values.get("href"))


def test_every_page_is_there_and_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert {"index.html", "rules.html", "faq.html", "cli.html"} <= {page.name for page in pages}
    for page in pages:
        for source in filter(None, Loaded(page.read_text()).sources):
            assert not re.match(r"(https?:)?//", source), f"{page.name} loads {source}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", style.read_text()), style.name


@needs_browser
def test_a_browser_asks_nobody_else(site, browser):
    asked = []
    page = browser.new_page(viewport={"width": 375, "height": 800})
    page.on("request", lambda request: asked.append(request.url))
    for name in ("index.html", "rules.html"):
        page.goto((site / name).as_uri())
        page.wait_for_load_state("load")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 375, f"{name} scrolls sideways on a phone: {width} pixels"
    page.close()
    assert asked
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked), asked


def test_the_command_line_reference_has_every_command_and_option(site):
    text = (site / "cli.html").read_text()

    def walk(command, path):
        yield path, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, [*path, name])

    for path, command in walk(typer.main.get_command(cli.app), ["askance"]):
        assert f'<h{min(len(path) + 1, 4)} id="{"-".join(path)}"' in text, path
        for option in command.params:
            for name in option.opts:
                assert not name.startswith("--") or name in text, (path, name)


def test_the_reference_has_every_public_name(site):
    text = (site / "api" / "index.html").read_text()
    for name in askance.__all__:
        if name != "strategies":
            assert re.search(rf'id="askance\.([\w.]+\.)?{name}[."]', text), name


def tables():
    """The two tables of rules as written, one after the other: name → cells."""
    text = RULES.read_text().partition("\n| rule | option |")[0]
    linked = re.findall(r"^\| \[`([a-z-]+)`\]\(#\1\) \|(.*)\|$", text, re.MULTILINE)
    plain = re.findall(r"^\| `([a-z-]+)` \|(.*)\|$", text, re.MULTILINE)
    return [{name: _cells(row) for name, row in rows} for rows in (linked, plain)]


def _cells(row):
    return [cell.strip() for cell in row.split("|")]


def test_the_tables_have_every_rule_in_order():
    for rows in tables():
        assert list(rows) == strategies.names()


@pytest.mark.parametrize("name", strategies.names())
def test_the_tables_say_what_a_rule_declares(name):
    picked, declared = (rows[name] for rows in tables())
    picks, paper, cost, memory = picked
    streams, needs, draws, several = declared
    rule = strategies.get(name)
    assert streams == ("yes" if isinstance(rule, (Pointwise, TwoStage)) else "no")
    assert needs == (", ".join(sorted(rule.needs)) or "nothing")
    assert draws == ("yes" if rule.random else "no")
    assert several == several_labels(name)
    assert cost == rule.cost
    assert all((picks, cost, memory))
    # The paper of the table is the one the rule's docstring refers to.
    for word in re.findall(r"[A-Z]\w+|\d{4}|ours", paper):
        assert word in type(rule).__doc__, f"{word} of {paper!r} is not in the docstring"


def several_labels(name):
    rule = strategies.get(name)
    if rule.multilabel is None:
        return "any"
    inside = {"grad": strategies.Grad(loss="multilabel")}
    for options in ({"loss": "multilabel"}, inside):
        try:
            if strategies.get(name, **options).multilabel:
                return "option"
        except askance.AskanceError:
            continue
    return "no"


@pytest.mark.parametrize("name", strategies.names())
def test_each_rule_has_a_section_with_its_docstring(site, name):
    rule = type(strategies.get(name))
    assert f"## {name}\n::: askance.strategies.{rule.__name__}\n" in RULES.read_text()
    # The docstring's Reference and Deviations come with it.
    assert f'<h2 id="{name}"' in (site / "rules.html").read_text()


def test_every_page_of_the_folder_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert page.relative_to(ROOT / "docs").as_posix() in text
    assert yaml.safe_load(text)["theme"]["font"] is False
