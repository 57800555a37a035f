"""The tree of errors."""

from __future__ import annotations

import inspect

from askance import AskanceError, errors
from askance.errors import UnknownError


def test_every_error_is_an_askance_error_and_a_value_error():
    kinds = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, Exception)]
    found = [e for e in kinds if not issubclass(e, Warning)]
    assert [e.__name__ for e in kinds if e not in found] == ["SelectionWarning"]
    assert {e.__name__ for e in found} == {
        "AskanceError",
        "InputError",
        "KindError",
        "NonFiniteError",
        "LabelError",
        "HeadError",
        "UnknownError",
        "DataError",
        "ShardError",
        "ExtraError",
        "SpecError",
        "StoreError",
    }
    assert all(issubclass(e, AskanceError) for e in found)
    assert issubclass(AskanceError, ValueError)


def test_an_unknown_name_may_differ_in_case_alone():
    assert "did you mean 'badge'?" in str(UnknownError.of("strategy", "BADGE", ["badge", "egl"]))


def test_an_unknown_name_lists_the_closest_first_and_all_after():
    error = UnknownError.of("colour", "gren", ["blue", "grey", "green"])
    assert str(error) == (
        "unknown colour 'gren': did you mean 'green' or 'grey'? known: blue, green, grey"
    )
    assert str(UnknownError.of("colour", "zzz", [])) == "unknown colour 'zzz': known: none"
