"""A run as a file: what was asked and answered, and the fingerprint of what it was asked about.

Neither the pool nor a model is in the file, and no name in it is anything but data: the rule is looked
up in the registry, as a user's name for it would be.
"""

from __future__ import annotations

import json
import os
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from askance import strategies
from askance._io.atomic import atomic_write
from askance.embedding import sources
from askance.embedding.rows import is_table, row_count
from askance.errors import InputError, StoreError
from askance.selection.contents import digests_of, plain, portions, rows_of
from askance.strategies import Strategy

KIND, VERSION = "askance run", 1


def write_run(state: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a run's state, as JSON."""
    content = {"kind": KIND, "version": VERSION, **state}
    atomic_write(path, (json.dumps(content, ensure_ascii=False) + "\n").encode())


def read_run(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state in a file."""
    try:
        state = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error})") from error
    except ValueError as error:
        raise StoreError(f"{path}: not a saved run, or cut short ({error})") from error
    if not isinstance(state, dict) or state.get("kind") != KIND:
        raise StoreError(f"{path}: not a saved run; it is written by run.save(path)")
    if state.get("version") != VERSION:
        raise StoreError(
            f"{path}: a saved run of version {state.get('version')}, this askance reads {VERSION}"
        )
    return state


def rule_record(rule: Strategy) -> dict[str, Any]:
    """A rule's name and options, as JSON can hold them."""
    options: dict[str, Any] = {}
    names: list[str] = [field.name for field in fields(rule)] if is_dataclass(rule) else []
    for name in names:
        value = getattr(rule, name)
        if isinstance(value, Strategy):
            value = rule_record(value)
        elif isinstance(value, tuple):
            value = list(value)
        elif value is not None and not isinstance(value, (bool, int, float, str)):
            raise InputError(
                f"a run with {rule.name}({name}={value!r}) cannot be saved: its options must be "
                f"numbers, texts or rules"
            )
        options[name] = value
    return {"name": rule.name, "options": options}


def rule_of_record(record: dict[str, Any]) -> Strategy:
    """The rule that `rule_record` described."""
    options = {
        name: rule_of_record(value)
        if isinstance(value, dict)
        else (tuple(value) if isinstance(value, list) else value)
        for name, value in record["options"].items()
    }
    return strategies.get(record["name"], **options)


def fingerprint(data: Any) -> str | None:
    """What tells the contents of a pool or of labels apart; None where they are not at hand."""
    items = plain(data)
    if items is None:
        return None
    hashed = blake2b(digest_size=16)
    for part in portions(items):
        for digest in digests_of(part, np.arange(rows_of(part))):
            hashed.update(digest)
    return hashed.hexdigest()


def described(data: Any) -> dict[str, Any]:
    """How many rows some data has, and the fingerprint of their contents."""
    if isinstance(data, tuple) and len(data) == 2:
        data = data[0]
    size = row_count(data) if is_table(data) or isinstance(data, list) else sources.size(data)
    return {"size": size, "digest": fingerprint(data)}
