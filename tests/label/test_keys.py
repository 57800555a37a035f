"""Keys of classes: digits, then letters, a class named by a key that key, and no key twice."""

import re
from pathlib import Path

import askance.label
from askance.label.keys import KEYS, assigned_keys
from askance.label.records import Class


def keys_of(*names):
    keys = assigned_keys([Class(number, name) for number, name in enumerate(names)])
    return [keys.get(number) for number in range(len(names))]


def test_digits_then_letters_then_none():
    given = keys_of(*(f"class {number}" for number in range(100)))
    assert given == [*KEYS, *[None] * (100 - len(KEYS))]


def test_a_class_named_by_a_free_key_has_it():
    assert keys_of("7", "cat", "C", "1") == ["7", "1", "c", "2"]
    assert keys_of(*"0123456789") == [*"0123456789"]
    assert keys_of("10", "u", "") == ["1", "2", "3"]  # no keys of theirs


def test_a_later_class_moves_no_key():
    names = ["a", "3", "c", "7", "x", "dog", "1"]
    for count in range(len(names)):
        assert keys_of(*names)[:count] == keys_of(*names[:count])


def test_the_pages_commands_are_no_keys_of_classes():
    text = (Path(askance.label.__file__).parent / "static" / "keys.js").read_text(encoding="utf-8")
    commands = re.search(r"COMMANDS = \{(.*?)\}", text).group(1)
    letters = set(re.findall(r"\b([a-z]): ", commands))
    assert letters == set("abcdefghijklmnopqrstuvwxyz") - set(KEYS)
