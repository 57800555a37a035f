"""What was picked: the items themselves, where the data is at hand."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from askance import data, oracles
from askance._io.filenames import is_path
from askance.data import Dataset
from askance.errors import AskanceError
from askance.experiments.statistics.suite import Suite
from askance.figures.style import rule_style
from askance.report.elements import Block, Details, PickedItem, PickedItems, Section, Text
from askance.report.facts import Facts, StoreFacts
from askance.report.formatting import plural

IMAGES, TEXTS = 12, 3  # shown of each rule
LENGTH = 200  # characters of a text
SIDE = 64  # pixels of a thumbnail, at most
_READ_WITH = ("label", "text", "features", "encoder")  # what of a spec says how its data is read


def picks_section(facts: Facts, data_dir: Path | None = None) -> Section:
    """For each store the first picks of every rule; where they cannot be shown, why not."""
    blocks: list[Block] = []
    if not facts.stores:
        blocks.append(Text("An export does not say what was picked; a store does.", "note"))
    loaded: tuple[str, Dataset | str] | None = None
    for store in sorted(facts.stores, key=lambda store: (store.spec["dataset"], store.name)):
        key = " ".join(str(store.spec.get(name)) for name in ("dataset", *_READ_WITH, "imbalance"))
        if loaded is None or loaded[0] != key:
            loaded = key, _load(store, data_dir)
        shown = _of_store(store, loaded[1], facts.suite)
        blocks += shown if len(facts.stores) == 1 else [Details(store.name, shown)]
    return Section("picks", "What was picked", blocks)


def _load(store: StoreFacts, data_dir: Path | None) -> Dataset | str:
    """The store's data, or why it cannot be had. Nothing is downloaded."""
    name = store.spec["dataset"]
    where: str | Path = name
    if is_path(name):
        where = Path(name).expanduser()
        if store.file is not None and (store.file.parent / where).exists():
            where = store.file.parent / where
    options = {key: store.spec.get(key) for key in _READ_WITH}
    rare = store.spec.get("imbalance")
    if ":" in (options["encoder"] or ""):  # a file's, the hub's or a user's code: none is run here
        return (
            f"These runs were made with the features of {options['encoder']}. A report runs none but "
            "askance's own encoders, so what was picked cannot be shown."
        )
    try:
        imbalance = None if rare is None else data.Imbalance(**rare)
        return data.load(
            where,
            data_dir,
            **options,
            imbalance=imbalance,
            on_encode="cached",
            download=False,
            progress=False,
        )
    except (AskanceError, OSError) as error:
        if "not in the cache" in str(error):
            return (
                f"The features of {options['encoder']} that these runs were made with are not in this "
                "machine's cache, so what was picked cannot be shown; askance run makes them."
            )
        shown = Path(name).name if is_path(name) else name
        get = "" if is_path(name) else f" (askance data fetch {name} gets it)"
        return f"The data of {shown} is not at hand{get}, so what was picked cannot be shown."


def _of_store(store: StoreFacts, dataset: Dataset | str, suite: Suite) -> list[Block]:
    if isinstance(dataset, str):
        return [Text(dataset, "note")]
    if dataset.fingerprint != store.info["fingerprint"]:
        text = (
            f"The {dataset.name} at hand is other data than these runs were made with, so what was "
            "picked cannot be shown."
        )
        return [Text(text, "note")]
    first = {(r.strategy, r.seed): r for r in store.records if r.round == 0 and len(r.picks)}
    if not first:
        return [Text("Nothing has been picked yet.", "note")]
    seed = min(seed for _, seed in first)
    rules = suite.sort(rule for rule, s in first if s == seed)
    labels = first[rules[0], seed].labels
    blocks: list[Block] = [
        Text(
            f"The first picks of each rule in seed {seed}, best first. They were chosen with the same "
            f"model, trained on the same {plural(labels, 'label')}, so only the rule differs. "
            "Under each is the answer that came back."
        )
    ]
    count = IMAGES if dataset.kind == "image" else TEXTS
    rows = {rule: first[rule, seed].picks[:count] for rule in rules}
    items = {int(row): dataset.raw[int(row)] for some in rows.values() for row in some}
    top = max((int(np.max(item)) for item in items.values() if _is_image(item)), default=255)
    for rule in rules:
        answers = _answers(store, dataset, rows[rule])
        shown = [
            _pick(items[int(row)], answer, top)
            for row, answer in zip(rows[rule], answers, strict=True)
        ]
        blocks.append(PickedItems(rule, rule_style(rule).colour, shown))
    return blocks


def _answers(store: StoreFacts, dataset: Dataset, rows: NDArray[np.int64]) -> list[str]:
    """What the experiment's oracle said of each row, by the name of the class."""
    options = dict(store.spec["oracle"])
    oracle = oracles.make(
        options.pop("kind"), dataset.train.labels, len(dataset.classes), **options
    )
    answered = oracle.answer(rows)
    labels = dict(zip(answered.rows.tolist(), answered.labels.tolist(), strict=True))
    texts = []
    for row in rows.tolist():
        truth = int(dataset.train.labels[row])
        if row not in labels:
            texts.append("no answer")
        elif labels[row] == truth:
            texts.append(dataset.classes[truth])
        else:
            texts.append(f"{dataset.classes[labels[row]]}, in truth {dataset.classes[truth]}")
    return texts


def _pick(item: Any, answer: str, top: int) -> PickedItem:
    if isinstance(item, str):
        text = " ".join(item.split())
        return PickedItem(answer, text=text if len(text) <= LENGTH else text[: LENGTH - 1] + "…")
    if _is_image(item):
        return PickedItem(answer, image=_thumbnail(np.asarray(item), top))
    values = np.asarray(item).ravel().tolist()
    shown = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in values[:12]]
    return PickedItem(answer, text=", ".join(shown) + (", …" if len(values) > 12 else ""))


def _is_image(item: Any) -> bool:
    if not isinstance(item, np.ndarray) or item.dtype != np.uint8:
        return False
    return item.ndim == 2 or (item.ndim == 3 and item.shape[2] == 3)


def _thumbnail(array: NDArray[Any], top: int) -> bytes:
    if 0 < top < 128:  # not every grey goes to 255: those of `digits` end at 16
        array = (array * (255 / top)).astype(np.uint8)
    image = Image.fromarray(array)
    image.thumbnail((SIDE, SIDE))
    content = io.BytesIO()
    image.save(content, "PNG", optimize=True)
    return content.getvalue()
