"""What the site has beside the pages of this folder.

Pages that lie elsewhere in the repository (`results/`, the changelog) are taken along, links to them
are led there, and the command line's help is written out where a page says `<!-- help -->`.
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
ALONG = ("CHANGELOG.md", "CONTRIBUTING.md", "examples/*.py", f"{MEASURED}/**/*.*")
KINDS = {".md", ".png", ".svg", ".json", ".csv", ".py"}
HELP = "<!-- help -->"
_OBJECT = re.compile(r"^(::: [\w.]+)$(?!\n    options)", re.MULTILINE)
OPTIONS = {
    # A rule's options, paper and deviations, from its docstring; the heading is the page's own.
    "rules.md": "{ show_root_heading: false, show_root_toc_entry: false, members: [] }",
    # Here the module is part of the name: there are several `write`.
    "api/experiments.md": "{ show_root_full_path: true }",
    "api/data.md": "{ show_root_full_path: true }",
    "api/strategies.md": "{ show_root_full_path: true }",
}
_SKIP = re.compile(r'^(```\w+) skip="[^"]*"$', re.MULTILINE)  # for the tests, not for readers
_LINK = re.compile(r"(\]\()([^)#:\s]+)(?=[)#])")


def on_config(config: Any) -> Any:
    config.nav = list(_there(config.nav, Path(config.docs_dir)))
    return config


def _there(entries: list[Any], folder: Path) -> Iterator[Any]:
    for entry in entries:
        title, target = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(target, list):
            yield {title: list(_there(target, folder))}
        elif target == MEASURED:
            yield {title: _along(f"{MEASURED}/**/*.md")}
        else:
            yield entry


def on_files(files: Files, config: Any) -> Files:
    for name in _along(*ALONG):
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def _along(*patterns: str) -> list[str]:
    """Names of the files that are taken along, from the root of the repository."""
    found = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return [path.relative_to(ROOT).as_posix() for path in found if path.suffix in KINDS]


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    here = PurePosixPath(page.file.src_uri)
    # Where the page lies in the repository; those of docs/ lie one folder deeper than in the site.
    home = here if (ROOT / here).exists() else PurePosixPath("docs", here)

    def led(match: re.Match[str]) -> str:
        target = normpath((home.parent / match[2]).as_posix())
        known = files.get_file_from_path(target.removeprefix("docs/"))
        if known is None or target.startswith(".."):
            return match[0]
        return match[1] + os.path.relpath(known.src_uri, here.parent)

    markdown = _SKIP.sub(r"\1", _LINK.sub(led, markdown))
    if str(here) in OPTIONS:
        markdown = _OBJECT.sub(rf"\1\n    options: {OPTIONS[str(here)]}", markdown)
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
