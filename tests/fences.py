"""The code fences of a Markdown page, and a folder in which they are run.

The first line of a fence says what the test does with it:

    ```python                     run; the fences of a page share one namespace and one folder
    ```python title="rule.py"     a file of that name in the folder, whatever its language
    ```text                       right after a fence that is run: what it prints (`...`: anything)
    ```console                    each `$ command` is run, and must print what is shown below it
    ```console skip="a reason"    not run, for that reason; but its commands must exist
"""

import ast
import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from askance import cli, strategies

ROOT = Path(__file__).parents[1]
ASIDE = ("README.md", "CONTRIBUTING.md")
PAGES = [*(ROOT / name for name in ASIDE), *sorted((ROOT / "docs").rglob("*.md"))]

# Languages of fences that are only shown.
QUIET = ("text", "toml", "json", "csv", "html")

_FENCE = re.compile(r"^```(\w*)([^\n`]*)\n(.*?)^```[ ]*$", re.DOTALL | re.MULTILINE)
_OPTION = re.compile(r'(\w+)="([^"]*)"')
_SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Fence:
    """One fenced block: `line` is where its content starts in the page."""

    page: str
    line: int
    language: str
    content: str
    title: str | None = None
    skip: str | None = None

    @property
    def where(self):
        return f"{self.page}:{self.line}"

    @property
    def commands(self):
        """(command, what is shown below it) of each `$` line."""
        text = self.content.replace("\\\n", " ")
        first, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
        assert not first.strip(), f"{self.where}: a console fence starts with `$ command`"
        return [part.partition("\n")[::2] for part in parts]


def fences(page):
    """The fences of a page, in order."""
    text = page.read_text()
    parsed = []
    for match in _FENCE.finditer(text):
        language, info, content = match.groups()
        options = dict(_OPTION.findall(info))
        line = text.count("\n", 0, match.start()) + 2
        parsed.append(Fence(name_of(page), line, language, content, **options))
    return parsed


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def words(command):
    return shlex.split(command, comments=True)


class Folder:
    """A folder in which the examples of one page are run."""

    def __init__(self, path):
        self.path, self.installed = path, path / "installed"
        self.names = {"__name__": "__main__"}
        self.printed = None

    @contextlib.contextmanager
    def entered(self):
        """Change into the folder and make its modules importable; undo both afterwards."""
        before, modules, path = Path.cwd(), set(sys.modules), list(sys.path)
        os.chdir(self.path)
        sys.path[:0] = [str(self.path), str(self.installed)]
        strategies._third_party.cache_clear()
        try:
            yield self
        finally:
            os.chdir(before)
            sys.path[:] = path
            for name in set(sys.modules) - modules:
                file = getattr(sys.modules[name], "__file__", None)
                if file and Path(file).is_relative_to(self.path):
                    del sys.modules[name]
            strategies._third_party.cache_clear()

    def do(self, fence):
        """Run the fence, or write it, or compare it with what the one before it printed."""
        printed, self.printed = self.printed, None
        if fence.skip is not None:
            check_commands(fence)
        elif fence.title is not None:
            file = self.path / fence.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(fence.content)
        elif fence.language == "python":
            self.printed = self._python(fence)
        elif fence.language == "console":
            for command, shown in fence.commands:
                self._command(fence, command, shown)
        elif fence.language == "text" and printed is not None:
            compare(fence, "the fence above", fence.content, printed)
        else:
            assert fence.language in QUIET, (
                f"{fence.where}: a fence of {fence.language or 'no language'!r} is neither run nor "
                f'shown alone; make it python or console, or say skip="why it cannot run here"'
            )

    def _python(self, fence):
        # As many empty lines as the page has above: a traceback then points into the page.
        source = "\n" * (fence.line - 1) + fence.content
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(source, str(ROOT / fence.page), "exec"), self.names)
        return out.getvalue()

    def _command(self, fence, command, shown):
        program, *arguments = words(command)
        if program == "askance":
            printed = self._askance(fence, command, arguments)
        elif (program, *arguments[:1]) == ("pip", "install"):
            printed = self._pip(arguments[1:])
        else:
            raise AssertionError(f'{fence.where}: {program} is not run here; say skip="why"')
        if shown.strip():
            compare(fence, command, shown, printed)

    def _askance(self, fence, command, arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main(arguments)
        assert code == 0, f"{fence.where}: {command} → {code}\n{out.getvalue()}{err.getvalue()}"
        return out.getvalue()

    def _pip(self, arguments):
        """Install into a folder of the test, without a network."""
        here = ["--target", str(self.installed), "--no-deps", "--no-index", "--no-build-isolation"]
        quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"]
        pip = [sys.executable, "-m", "pip", "install", *quiet, *here, *arguments]
        subprocess.run(pip, check=True, cwd=self.path)
        strategies._third_party.cache_clear()
        return ""


def compare(fence, what, shown, printed):
    assert doctest.OutputChecker().check_output(shown, printed, _SAME), (
        f"{fence.where}: {what} is shown to print\n{shown}\nand prints\n{printed}"
    )


def check_commands(fence):
    """Check that the commands of a fence that is not run exist."""
    if fence.language == "python":
        ast.parse(fence.content)
    if fence.language != "console":
        return
    for command, _ in fence.commands:
        program, *arguments = words(command)
        if program == "askance":
            check_arguments(fence, arguments)
        elif program == "make":
            targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert set(arguments) <= set(targets), f"{fence.where}: no such target: {command}"


def check_arguments(fence, arguments):
    """Parse a command line as `askance` does, without running it."""
    command = typer.main.get_command(cli.app)
    path = ["askance"]
    while hasattr(command, "commands") and arguments:
        name, *arguments = arguments
        assert name in command.commands, f"{fence.where}: no command {' '.join([*path, name])}"
        command, path = command.commands[name], [*path, name]
    try:
        command.make_context(" ".join(path), list(arguments))
    except cli._UsageError as error:
        raise AssertionError(f"{fence.where}: {error.format_message()}") from None
