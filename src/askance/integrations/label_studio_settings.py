"""What a labelling project remembers of Label Studio, in a file of its folder.

The file is data: a network that it names is not imported unless it is one of askance's own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from askance import encoders, models
from askance._io.atomic import atomic_write
from askance.errors import InputError
from askance.integrations.label_studio_server import RemoteProject, Studio
from askance.label import ItemSource, LabelingOptions, LabelingSession, open_session
from askance.label.project import existing_project
from askance.label.source import LINEAR, NO_ENCODER

FILE = "label-studio.json"


@dataclass(frozen=True)
class Settings:
    """What a project does not remember by itself; kept in its folder, so that it is said once.

    Args:
        source: path, text, features, id: arguments of `askance.label.ItemSource`.
        options: arguments of `askance.label.LabelingOptions`; seed and held-out are the project's own.
    """

    source: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def saved_settings(folder: Path) -> dict[str, Any]:
    """What the file of the last push says; empty where there is none."""
    path = folder / FILE
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read ({error}); delete it, and say all of it again"
        ) from error
    parts = (note.get("source"), note.get("options")) if isinstance(note, dict) else (None,)
    if not all(isinstance(part, dict) for part in parts):
        raise InputError(f"{path} is not what a push writes; delete it, and say all of it again")
    return note


def merged_settings(folder: Path, changes: Settings) -> tuple[dict[str, Any], Settings]:
    """The note, and the settings of the last time with these changes."""
    with existing_project(folder) as store:
        kept = store.project()
    assert kept is not None
    note = saved_settings(folder)
    source = {"path": kept.data, **note.get("source", {}), **changes.source}
    source["path"] = str(Path(source["path"]).absolute())
    options = {**note.get("options", {}), **changes.options}
    for name, ours in (
        ("model", [*models.names(), LINEAR]),
        ("encoder", [*encoders.names(), NO_ENCODER]),
    ):
        value = options.get(name)
        if name not in changes.options and value is not None and value not in ours:
            raise InputError(
                f"{folder / FILE} names the {name} {value!r}, which is code that would be imported and "
                f"run; expected one of {', '.join(ours)}: say --{name} {value} if you trust it"
            )
    options.update(seed=kept.seed, held_out=kept.held_out)
    return note, Settings(source, options)


def save_settings(folder: Path, remote: RemoteProject, settings: Settings) -> None:
    """Write the file for the next time."""
    note = {
        "url": remote.studio.url,
        "project": remote.id,
        "title": remote.title,
        "source": dict(settings.source),
        "options": dict(settings.options),
    }
    content = json.dumps(note, indent=1, ensure_ascii=False) + "\n"
    atomic_write(folder / FILE, content.encode())


def remote_name(folder: Path, note: Mapping[str, Any], studio: Studio, to: str | None) -> str:
    """The server's project to use, by id or title."""
    if to is not None:
        return to
    if note.get("url") == studio.url:
        return str(note["project"])
    if note.get("title"):  # the same server by another name, or its successor
        return str(note["title"])
    return f"askance {folder.resolve().name}"[:50]


def session_of(folder: Path, settings: Settings) -> LabelingSession:
    """The session of a project with these settings, which trains in this thread."""
    source = {**settings.source, "path": Path(settings.source["path"])}
    try:
        options = LabelingOptions(
            **{"worker": "here", "kept_for": math.inf, **settings.options}  # until they are pulled
        )
        return open_session(folder, ItemSource(**source), (), options)
    except TypeError as error:
        raise InputError(f"{folder / FILE} holds a setting there is not: {error}") from error
