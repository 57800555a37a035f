"""Small encoders and files that tests share."""

import io

import numpy as np
from PIL import Image

from askance.encoders import FunctionEncoder


def letters(texts):
    """Four features of each text: its length, its vowels, its spaces, 1."""
    return [[len(t), sum(map(t.count, "aeiou")), t.count(" "), 1.0] for t in texts]


def means(images):
    """Three features of each image: the mean of each channel."""
    return [np.asarray(image).mean(axis=(0, 1)) for image in images]


class Counting:
    """A function that remembers the items it was given."""

    def __init__(self, function):
        self.function, self.items = function, []
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__

    def __call__(self, items):
        self.items += list(items)
        return self.function(items)


def text_encoder(function=letters, version="1"):
    return FunctionEncoder(function, "text", version)


def image_encoder(function=means):
    return FunctionEncoder(function, "image", "1")


def image_bytes(pixels, form="PNG", **options):
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, form, **options)
    return content.getvalue()


def make():
    """What "tests.encoders.toys:make" names."""
    return text_encoder()


def make_nothing():
    return None
