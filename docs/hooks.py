"""Adds to the site what is not in this folder.

Pages from elsewhere in the repository (`results/`, the changelog) are added, links to them are changed
accordingly, and `<!-- help -->` is replaced by the help of every command.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
MEASURED = "results"
ADDED = ("CHANGELOG.md", "CONTRIBUTING.md", "examples/*.py", f"{MEASURED}/**/*.*")
KINDS = {".md", ".png", ".svg", ".json", ".csv", ".py"}
HELP = "<!-- help -->"
_OBJECT = re.compile(r"^(::: [\w.]+)$(?!\n    options)", re.MULTILINE)
OPTIONS = {
    # Only a rule's options, paper and deviations: the page has its own headings.
    "rules.md": "{ show_root_heading: false, show_root_toc_entry: false, members: [] }",
    # Full names: there are several functions `write`.
    "api/experiments.md": "{ show_root_full_path: true }",
    "api/data.md": "{ show_root_full_path: true }",
    "api/strategies.md": "{ show_root_full_path: true }",
}
_SKIP = re.compile(r'^(```\w+) skip="[^"]*"$', re.MULTILINE)  # only the tests need the reason
_LINK = re.compile(r"(\]\()([^)#:\s]+)(?=[)#])")


def on_config(config: Any) -> Any:
    config.nav = list(_expanded(config.nav))
    return config


def _expanded(entries: list[Any]) -> Iterator[Any]:
    """The navigation, with every page of `results/` in the place of that folder."""
    for entry in entries:
        title, target = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(target, list):
            yield {title: list(_expanded(target))}
        elif target == MEASURED:
            yield {title: _names(f"{MEASURED}/**/*.md")}
        else:
            yield entry


def on_files(files: Files, config: Any) -> Files:
    for name in _names(*ADDED):
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def _names(*patterns: str) -> list[str]:
    """Paths of the files to add, relative to the root of the repository."""
    paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return [path.relative_to(ROOT).as_posix() for path in paths if path.suffix in KINDS]


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    in_site = PurePosixPath(page.file.src_uri)
    # Pages of docs/ are one folder deeper in the repository than in the site.
    in_repository = in_site if (ROOT / in_site).exists() else PurePosixPath("docs", in_site)

    def relinked(match: re.Match[str]) -> str:
        target = normpath((in_repository.parent / match[2]).as_posix())
        file = files.get_file_from_path(target.removeprefix("docs/"))
        if file is None or target.startswith(".."):
            return match[0]
        return match[1] + os.path.relpath(file.src_uri, in_site.parent)

    markdown = _SKIP.sub(r"\1", _LINK.sub(relinked, markdown))
    if str(in_site) in OPTIONS:
        markdown = _OBJECT.sub(rf"\1\n    options: {OPTIONS[str(in_site)]}", markdown)
    return markdown.replace(HELP, command_help()) if HELP in markdown else markdown


def command_help() -> str:
    """`--help` of every command, as Markdown."""
    return "\n".join(_help_of(_command(), []))


def _command() -> Any:
    from typer.main import get_command

    from askance.cli import app

    return get_command(app)


def _help_of(command: Any, path: list[str]) -> Iterator[str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        _command()([*path, "--help"], prog_name="askance", standalone_mode=False)
    yield f"{'#' * min(2 + len(path), 4)} {' '.join(['askance', *path])}\n"
    yield f"```text\n{out.getvalue().strip()}\n```\n"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _help_of(inner, [*path, name])
