"""Items through an encoder: the right rows, each once, whatever is missing or broken."""

import io

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from askance import encoders
from askance.errors import DataError, InputError, NonFiniteError, UnknownError
from tests.encoders.toys import Counting, image_bytes, image_encoder, letters, text_encoder

RNG = np.random.default_rng(0)
PIXELS = [RNG.integers(0, 256, size=(9, 7, 3), dtype=np.uint8) for _ in range(6)]


@given(
    st.lists(st.text("ab c", min_size=1).filter(str.strip), max_size=60),
    st.integers(1, 9),
    st.booleans(),
)
def test_rows_are_those_of_one_by_one(tmp_path_factory, texts, batch_size, cached):
    cache = tmp_path_factory.mktemp("cache") if cached else False
    for _ in range(2):
        encoded = encoders.encode(text_encoder(), texts, cache=cache, batch_size=batch_size)
        expected = np.array([letters([text])[0] for text in texts]).reshape(-1, 4)
        np.testing.assert_array_equal(encoded.features, expected)
        np.testing.assert_array_equal(encoded.rows, np.arange(len(texts)))


def test_copies_are_encoded_once(tmp_path):
    function = Counting(letters)
    encoder = text_encoder(function)
    function.items.clear()
    encoders.encode(encoder, ["a", "bb", "a", "a", "bb"], cache=tmp_path)
    assert sorted(function.items) == ["a", "bb"]


def test_only_new_items_are_encoded(tmp_path):
    function = Counting(letters)
    encoder = text_encoder(function)
    first = encoders.encode(encoder, ["one", "two"], cache=tmp_path)
    function.items.clear()
    second = encoders.encode(encoder, ["two", "three", "one"], cache=tmp_path)
    assert function.items == ["three"]
    assert (first.computed, second.computed) == (2, 1)
    np.testing.assert_array_equal(second.features[[2, 0]], first.features)


def test_another_version_is_encoded_anew(tmp_path):
    encoders.encode(text_encoder(), ["one"], cache=tmp_path)
    assert encoders.encode(text_encoder(version="2"), ["one"], cache=tmp_path).computed == 1


@pytest.mark.parametrize("form", ["path", "text path", "bytes", "pillow", "array"])
def test_images_in_every_form(tmp_path, form):
    paths = [tmp_path / f"{n}.png" for n in range(len(PIXELS))]
    for path, pixels in zip(paths, PIXELS, strict=True):
        path.write_bytes(image_bytes(pixels))
    items = {
        "path": paths,
        "text path": [str(path) for path in paths],
        "bytes": [path.read_bytes() for path in paths],
        "pillow": [Image.fromarray(pixels) for pixels in PIXELS],
        "array": PIXELS,
    }[form]
    encoded = encoders.encode(image_encoder(), items)
    np.testing.assert_allclose(encoded.features, [p.mean(axis=(0, 1)) for p in PIXELS], rtol=1e-6)


def test_unreadable_images_are_named_or_skipped_and_counted(tmp_path):
    good, bad = image_bytes(PIXELS[0]), b"no image"
    gone, heic = tmp_path / "gone.png", b"\x00\x00\x00\x18ftypheic" + bytes(40)
    items = [good, bad, gone, good, heic]
    with pytest.raises(DataError, match="item 1: the image: not a readable image"):
        encoders.encode(image_encoder(), items)
    encoded = encoders.encode(image_encoder(), items, on_error="skip", cache=tmp_path / "cache")
    np.testing.assert_array_equal(encoded.rows, [0, 3])
    assert [*encoded.unreadable] == [1, 2, 4]
    assert "gone.png: cannot be read" in encoded.unreadable[2]
    assert "HEIC" in encoded.unreadable[4]
    again = encoders.encode(image_encoder(), items, on_error="skip", cache=tmp_path / "cache")
    assert again.computed == 0
    assert again.unreadable == encoded.unreadable


def test_copies_of_an_unreadable_image_are_all_skipped():
    encoded = encoders.encode(image_encoder(), [b"x", PIXELS[0], b"x"], on_error="skip")
    assert [*encoded.unreadable] == [0, 2]
    assert len(encoded) == 1


@pytest.mark.parametrize("turned", range(1, 9))
def test_photos_are_turned_upright(turned):
    pixels = np.zeros((8, 8, 3), dtype=np.uint8)
    pixels[:4] = 200  # light above, dark below
    exif = Image.Exif()
    exif[0x0112] = turned
    photo = image_bytes(pixels, exif=exif)

    def corners(images):
        return [[image[0, 0, 0], image[0, -1, 0], image[-1, 0, 0]] for image in images]

    upright = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(photo))))
    encoder = encoders.FunctionEncoder(corners, "image", "1")
    np.testing.assert_array_equal(
        encoders.encode(encoder, [photo]).features, np.array(corners([upright]), dtype=np.float32)
    )


def test_empty_texts_are_refused_or_skipped():
    with pytest.raises(DataError, match="item 1: an empty text"):
        encoders.encode(text_encoder(), ["a", " \n"])
    assert [*encoders.encode(text_encoder(), ["a", ""], on_error="skip").unreadable] == [1]


def test_nothing_to_encode():
    assert encoders.encode(text_encoder(), []).features.shape == (0, 4)


def test_progress_reaches_the_end():
    steps = []
    encoders.encode(
        text_encoder(),
        [str(n) for n in range(100)],
        batch_size=2,
        progress=lambda *at: steps.append(at),
    )
    assert steps == [(done, 100) for done in range(0, 102, 2)]  # after every batch


def test_progress_counts_what_is_cached_or_cannot_be_read(tmp_path):
    steps = []
    texts = ["a", "b", "", "a", "c", "d", "e"]
    encoders.encode(text_encoder(), texts[:2], cache=tmp_path)
    encoders.encode(text_encoder(), texts, cache=tmp_path, batch_size=1, on_error="skip",
                    progress=lambda *at: steps.append(at))  # fmt: skip
    done = [at for at, _ in steps]
    assert (done[0], done[-1]) == (0, 7)
    assert done == sorted(set(done))
    steps.clear()
    encoders.encode(text_encoder(), [], progress=lambda *at: steps.append(at))
    assert steps == []


def test_half_precision_is_autocast_and_off_by_default():
    modes, weights = [], torch.linspace(0.1, 1, 26 * 16).reshape(26, 16)

    def letters(texts):
        modes.append(torch.is_autocast_enabled("cpu"))
        counts = [[text.count(chr(97 + i)) for i in range(26)] for text in texts]
        return torch.tensor(counts, dtype=torch.float32) @ weights

    encoder = encoders.FunctionEncoder(letters, "text", "1")
    texts = ["some words", "a text", "quite another one"]
    modes.clear()
    full, half = (
        encoders.encode(encoder, texts, device="cpu", precision=each).features
        for each in ("float32", "bf16")
    )
    assert modes == [False, True]
    assert full.dtype == half.dtype == np.float32
    difference = np.linalg.norm(half - full, axis=1) / np.linalg.norm(full, axis=1)
    assert (difference > 0).all()
    assert (difference < 0.01).all()


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="a text must be a string, got int"):
        encoders.encode(text_encoder(), [3])
    with pytest.raises(InputError, match="a path, the bytes of a file"):
        encoders.encode(image_encoder(), [3.0])
    with pytest.raises(InputError, match="uint8 array"):
        encoders.encode(image_encoder(), [np.zeros((4, 4, 3))])
    with pytest.raises(InputError, match="batch_size must be a whole number"):
        encoders.encode(text_encoder(), ["a"], batch_size=0)
    with pytest.raises(UnknownError, match="raise"):
        encoders.encode(text_encoder(), ["a"], on_error="ignore")
    with pytest.raises(UnknownError, match="bf16"):
        encoders.encode(text_encoder(), ["a"], precision="fp16")

    def nan(texts):
        return [[1.0 if text == "text" else np.nan] for text in texts]

    broken = encoders.FunctionEncoder(nan, "text", "1")
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        encoders.encode(broken, ["a"])
    with pytest.raises(InputError, match="one row of features for each item"):
        encoders.FunctionEncoder(lambda texts: [1.0], "text", "1")


def test_items_of_the_other_kind_are_told(tmp_path):
    photo = tmp_path / "photo.png"
    photo.write_bytes(image_bytes(PIXELS[0]))
    with pytest.raises(
        InputError, match=r"takes texts, and the first item, .*photo.png', is the path"
    ):
        encoders.encode(text_encoder(), [str(photo)])
    with pytest.raises(InputError, match=r"takes images, and the first .*names no file"):
        encoders.encode(image_encoder(), ["What is it? " * 1000])
    assert len(encoders.encode(text_encoder(), ["a text that ends in photo.png"])) == 1


def test_a_table_or_a_single_text_is_no_list():
    class Table(dict):
        columns = ("text",)

    with pytest.raises(InputError, match=r"got a Table; pass one column of it"):
        encoders.encode(text_encoder(), Table(text=["a"]))
    with pytest.raises(InputError, match="must be a list of texts, got str"):
        encoders.encode(text_encoder(), "one text")
