"""`paper.toml`: what the paper contains, in its order, and what of ours answers it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import getsourcefile, unwrap
from pathlib import Path

import askance
from askance.errors import SpecError
from askance.experiments import reader

CONTENTS = Path(__file__).with_name("paper.toml")


@dataclass(frozen=True)
class PaperItem:
    """A figure, table, equation, algorithm, setting or claim; the fields as in `paper.toml`."""

    number: str
    about: str
    says: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    figure: str = ""
    panels: str = ""
    study: str = ""
    of: tuple[str, ...] = ()
    spec: reader.Pairs = ()
    claims: tuple[str, ...] = ()
    left_out: str = ""
    note: str = ""


@dataclass(frozen=True)
class PaperSection:
    """A section of the paper."""

    title: str
    item: tuple[PaperItem, ...]


@dataclass(frozen=True)
class PaperContents:
    """The whole paper."""

    section: tuple[PaperSection, ...]


@cache
def contents() -> PaperContents:
    """What `paper.toml` says."""
    text = CONTENTS.read_text(encoding="utf-8")
    node = reader.Node(CONTENTS.name, tomllib.loads(text), text, PaperContents)
    read: PaperContents = reader.read(PaperContents, node)
    return read


def source(code: str) -> str:
    """The file of MODULE:NAME, from the root of the repository.

    Raises:
        SpecError: where there is no such thing, so that no page names code that is not there.
    """
    module, _, name = code.partition(":")
    try:
        thing = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SpecError(f"{CONTENTS.name} names {code!r}, which is not there: {error}") from error
    file = getsourcefile(unwrap(thing)) or ""
    within = Path(file).resolve().relative_to(Path(askance.__file__).resolve().parent)
    return (Path("src/askance") / within).as_posix()
