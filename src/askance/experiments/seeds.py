"""Seeds as people write them: `5-24`, `0-4`, `0,3,5-9`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from askance.errors import InputError

MOST = 10_000  # seeds in one text: more is a slip of the keyboard
FORM = "write seeds such as 5-24, 0-4 or 0,3,5-9"
_PART = re.compile(r"([0-9]{1,18})(?:\s*-\s*([0-9]{1,18}))?")  # a store's integers have 18 digits


def parse_seeds(text: str) -> tuple[int, ...]:
    """The seeds that a text names, in rising order: "5-7,2" is (2, 5, 6, 7).

    Both ends of a range belong to it. One number is that one seed, not how many there are.

    Raises:
        InputError: for a text of another form, a range that falls, or a seed that is named twice.
    """
    seeds: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise InputError(f"seeds {text!r}: {part.strip()!r} is no seed and no range; {FORM}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise InputError(f"seeds {text!r}: {part.strip()!r} falls; write {last}-{first}")
        named = range(first, last + 1)
        if len(seeds) + len(named) > MOST:
            raise InputError(f"seeds {text!r} are more than {MOST:,}; name fewer")
        if twice := seeds.intersection(named):
            raise InputError(f"seeds {text!r}: seed {min(twice)} is named twice; name it once")
        seeds.update(named)
    return tuple(sorted(seeds))


def seed_ranges(seeds: Iterable[int]) -> str:
    """The shortest text that `parse_seeds` reads as these seeds: "0,3,5-9"; empty for none."""
    runs: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def seeds_of(written: int | str) -> tuple[int, ...]:
    """The seeds that a spec asks for: 3 is how many, (0, 1, 2); "5-24" is which."""
    return tuple(range(written)) if isinstance(written, int) else parse_seeds(written)


def as_written(seeds: Iterable[int]) -> int | str:
    """The seeds as a spec holds them: how many where they are 0, 1, 2, …, else which."""
    rising = tuple(sorted(set(seeds)))
    return len(rising) if rising == tuple(range(len(rising))) else seed_ranges(rising)


def to_option(written: int | str) -> str:
    """What `from_option` reads as these seeds: one seed alone is "7-7"."""
    lone = isinstance(written, str) and written.isdigit()
    return f"{written}-{written}" if lone else str(written)


def from_option(text: str) -> int | str:
    """`--seeds 5` is how many, `--seeds 5-24` is which."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text.strip()) else text
