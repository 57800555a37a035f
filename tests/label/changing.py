"""Data that changes while the page is served: what there is to change, and who answers meanwhile."""

import numpy as np
from PIL import Image

from tests.label.worlds import Person, client_of

N = 40
SHADES = ["dark", "light"]


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


def ann_of(session):
    ann = Person(client_of(session))
    ann.choice = choice
    return ann


def looked(session):
    """The state of the page after the two looks that a change takes."""
    session.watch.look()
    session.watch.look()
    return ann_of(session).state()


def right(session):
    """The share of the items n… that the newest model guesses right."""
    rows = [item for item in session.items.ids if item[1:4].isdigit()]
    guesses = [session.guess(item)[1].choice for item in rows]
    return np.mean([g == light(int(item[1:4])) for g, item in zip(guesses, rows, strict=True)])


def trained_again(session, ann):
    version = len(session.versions)
    while len(session.versions) == version:
        assert ann.work(1, session), "nothing is left to answer"
    assert session.training.error is None
