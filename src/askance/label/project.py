"""A project's folder: opened, or made, and seen to be of the data that is given.

Items may come and go, between two starts and while the page is served; what was answered stays. A
project of other data is refused.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from askance.errors import InputError, StoreError
from askance.label.chosen_encoder import new_project_encoder, project_encoder, with_encoder
from askance.label.contents import FILE as DIGESTS
from askance.label.contents import Digests
from askance.label.identity import Digest, identified
from askance.label.items import Items, read
from askance.label.records import (
    MOST_CLASSES,
    ChosenEncoder,
    Class,
    ClassEdit,
    Project,
    StoredItem,
    checked_name,
    now,
)
from askance.label.source import NO_ENCODER, ItemSource, LabelingOptions
from askance.label.store import FILE, ProjectStore
from askance.seeding import Draws


class OpenProject(NamedTuple):
    """A project that is open; the caller closes its store.

    Args:
        items: what is there to label, under the project's ids.
        store: what was asked and said.
        before: every item the project had, with its digest, before it was opened.
        digests: of the files, as they were read.
        options: as they were given, with the project's encoder.
    """

    items: Items
    store: ProjectStore
    before: dict[str, Digest]
    digests: Digests
    options: LabelingOptions


class OtherClassesError(InputError):
    """Classes are named that the project does not have, perhaps by a typing error."""


def create_or_check(
    store: ProjectStore,
    items: Items,
    classes: Sequence[str],
    options: LabelingOptions,
    add_classes: bool = False,
) -> tuple[Items, dict[str, Digest], LabelingOptions]:
    """Make the store one of these items and classes, or make sure that it is.

    The items under the project's ids, what the project had before, and the options with its encoder.
    """
    folder = store.path.parent
    project = store.project()
    if project is None:
        data = str(items.source.path.absolute())
        made = Project(data=data, kind=items.kind, seed=options.seed, held_out=options.held_out)
        new = _new_items(items, ())
        options = with_encoder(options, items.kind, new_project_encoder(options, items.kind))
        encoder = [ChosenEncoder(1, now(), options.encoder or NO_ENCODER)]
        store.add([made, *encoder, *_first_classes(classes), *new])
        return items, {item.id: item.digest for item in new}, options
    for name, value in (("kind", items.kind), ("seed", options.seed)):
        before = getattr(project, name)
        if before != value:
            raise StoreError(
                f"{folder} is a project of {name} {before!r}, now {value!r} is asked for; give "
                f"what it began with, or name another folder"
            )
    if project.held_out != options.held_out:
        raise StoreError(
            f"{folder} holds out a share of {project.held_out} of its items, now "
            f"{options.held_out} is asked for; which items are held out must not change: use "
            f"--held-out {project.held_out}, or name another folder"
        )
    chosen = store.encoders()
    named = options.encoder
    options = with_encoder(options, items.kind, project_encoder(options, chosen, folder))
    new_classes = _new_classes(store.classes(), classes, store.class_edits())
    if new_classes and not add_classes:
        raise _other_classes(store.annotations().offered(), new_classes, folder)
    store.add(new_classes)
    stored = store.items()
    items, new = match_items(stored, items, folder)
    store.add(new)
    if named is not None and named != (chosen[-1].encoder if chosen else NO_ENCODER):
        store.add([ChosenEncoder(len(chosen) + 1, now(), named)])
    return items, stored, options


def _other_classes(
    stored: Sequence[Class], new: Sequence[Class], folder: Path
) -> OtherClassesError:
    names = [each.name for each in stored]
    told = []
    for each in new:
        near = get_close_matches(each.name, names, n=1)
        told.append(f"{each.name!r}" + (f" (did you mean {near[0]!r}?)" if near else ""))
    return OtherClassesError(
        f"{folder} has the classes {', '.join(names)}; --classes also names {', '.join(told)}. Add "
        f"--add-classes if {'it is' if len(new) == 1 else 'they are'} to be new, or leave --classes out"
    )


def _first_classes(classes: Sequence[str]) -> list[Class]:
    if len(classes) < 2:
        raise InputError(
            f"a new project needs at least two classes, got {len(classes)}; name them with "
            f"--classes cat,dog"
        )
    new = _new_classes([], classes)
    if len(new) < len(classes):
        raise InputError(f"classes must differ, got {', '.join(classes)}")
    return new


def _new_classes(
    stored: Sequence[Class], classes: Sequence[str], edits: Iterable[ClassEdit] = ()
) -> list[Class]:
    """Classes that are not stored under this or a former name; capitals make no difference."""
    taken = {each.name.casefold() for each in stored} | {edit.name.casefold() for edit in edits}
    new: dict[str, str] = {}
    for text in classes:
        name = checked_name(text, "a class")
        if name.casefold() not in taken:
            new.setdefault(name.casefold(), name)
    if len(stored) + len(new) > MOST_CLASSES:
        raise InputError(f"at most {MOST_CLASSES} classes, got {len(stored) + len(new)}")
    return [Class(number, name) for number, name in enumerate(new.values(), start=len(stored))]


def match_items(
    stored: Mapping[str, Digest], items: Items, folder: Path
) -> tuple[Items, list[StoredItem]]:
    """The items under the ids of a project that has those, and the records of the new ones."""
    items = items.with_ids(identified(stored, items.names, items.digests))
    here = any(item in stored for item in items.ids)
    # The ids of a table were chosen: where none is there, another column was named.
    named = items.kind == "image" or any(name in stored for name in items.names)
    if stored and not (here and named):
        raise StoreError(
            f"{folder} is a project of other data: none of its {len(stored)} items are in "
            f"{items.source.path}; give the data it began with, or name another folder"
        )
    return items, _new_items(items, stored)


def _new_items(items: Items, stored: Container[str]) -> list[StoredItem]:
    moment, pairs = now(), zip(items.ids, items.digests, strict=True)
    return [StoredItem(item, moment, digest) for item, digest in pairs if item not in stored]


@dataclass(frozen=True, eq=False)
class ItemSplit:
    """Which items are held out and which are asked twice, decided by a draw for each item.

    Args:
        held_out: items never trained on, in the random order in which they are asked.
        repeated: items a second person is asked about.
        trained: rows of all other items, among which the rule chooses.
    """

    held_out: tuple[str, ...]
    repeated: frozenset[str]
    trained: NDArray[np.int64]

    @classmethod
    def of(cls, items: Items, options: LabelingOptions) -> ItemSplit:
        """The split of these items. Each item has a draw of its own, whatever others there are."""
        seed, share = options.seed, options.held_out
        draws = {item: _draw(seed, "held-out", item) for item in items.ids} if share else {}
        held = {item: value for item, value in draws.items() if value < share}
        if len(held) == len(items):  # a handful of items: leave something to learn from
            held = {}
        repeat = options.repeat
        repeated = frozenset(
            item for item in items.ids if repeat and _draw(seed, "repeat", item) < repeat
        )
        trained = np.asarray([row for row, item in enumerate(items.ids) if item not in held], int)
        return cls(tuple(sorted(held, key=held.__getitem__)), repeated, trained)

    @cached_property
    def held(self) -> frozenset[str]:
        """The held-out items, to look one up."""
        return frozenset(self.held_out)


@cache  # the data is read again and again while a page is served
def _draw(seed: int, purpose: str, item: str) -> float:
    return float(Draws(seed).generator(f"{purpose} {item}").random())


def open_project(
    project: str | Path,
    data: str | Path | ItemSource,
    classes: Sequence[str],
    options: LabelingOptions,
    add_classes: bool = False,
) -> OpenProject:
    """The project, made or seen to be of these items; the caller closes its store.

    Args:
        project: its folder.
        data: what there is to label.
        classes: their names; a project that exists needs none.
        options: how to ask and to train.
        add_classes: whether classes that a project does not have are added rather than refused.
    """
    folder = folder_of(project)
    source = data if isinstance(data, ItemSource) else ItemSource(Path(data))
    digests = Digests(folder / DIGESTS)
    items = read(source, digests)
    store = ProjectStore.open(folder)
    try:
        items, before, options = create_or_check(store, items, classes, options, add_classes)
        digests.save()
        return OpenProject(items, store, before, digests, options)
    except BaseException:
        store.close()
        raise


def existing_project(project: str | os.PathLike[str]) -> ProjectStore:
    """The store of a project that was made before, for this process alone."""
    folder = folder_of(Path(project))
    make = (
        f"make one first: askance label {folder} --data … --classes …; --no-server makes it and starts "
        f"no page"
    )
    if not (folder / FILE).is_file():
        raise InputError(f"{folder} is no labelling project, it has no {FILE}; {make}")
    store = ProjectStore.open(folder)
    if store.project() is None or not store.items():
        store.close()
        raise InputError(f"{folder} is a project that was never finished; {make}")
    return store


def folder_of(project: str | Path) -> Path:
    """The project's folder; a file in its place is refused."""
    folder = Path(project)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; a project is a folder, name another")
    return folder
