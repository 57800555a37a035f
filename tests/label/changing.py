"""Data that changes while the page is served: what there is to change, and who answers meanwhile."""

import numpy as np
from PIL import Image

from askance.label import open_desk
from tests.label.worlds import Person, client_of, options

N = 40


def light(number):
    """The class of the picture of a number; no shift of the numbers gives the same classes."""
    return number.bit_count() % 2


def put(root, name, number, light):
    """Noise that is dark or light, unlike that of any other number."""
    noise = np.random.default_rng(number).integers(0, 90, (32, 32, 3)) + 150 * light
    Image.fromarray(noise.astype(np.uint8)).save(root / name)


def add(root, number):
    put(root, f"n{number:03d}.png", number, light(number))


def photos(folder):
    """N images whose class is that of their number."""
    root = folder / "photos"
    root.mkdir()
    for number in range(N):
        add(root, number)
    return root


def choice(question):
    """The right answer, by the number in the name under which the item came."""
    return light(int(question["item"][1:4]))


def opened(folder, source, **more):
    return open_desk(folder / "project", source, ["dark", "light"], options(**more))


def ann_of(desk):
    ann = Person(client_of(desk))
    ann.choice = choice
    return ann


def looked(desk):
    """The state of the page after the two looks that a change takes."""
    desk.watch.look()
    desk.watch.look()
    return ann_of(desk).state()


def right(desk):
    """The share of the items n… that the newest model guesses right."""
    rows = [item for item in desk.items.ids if item[1:4].isdigit()]
    guesses = [desk.rounds.guess(item)[1].choice for item in rows]
    return np.mean([g == light(int(item[1:4])) for g, item in zip(guesses, rows, strict=True)])


def trained_again(desk, ann):
    version = len(desk.versions)
    while len(desk.versions) == version:
        assert ann.work(1, desk), "nothing is left to answer"
    assert desk.rounds.error is None
