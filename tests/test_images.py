"""Image files to pixels: upright, checked, or refused in words."""

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from askance.errors import DataError
from askance.images import decode_image, open_image

PIXELS = np.random.default_rng(0).integers(0, 256, size=(12, 8, 3), dtype=np.uint8)
ORIENTATION = 0x0112


def saved(pixels=PIXELS, form="PNG", **options):
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, form, **options)
    return content.getvalue()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "TIFF"])
@pytest.mark.parametrize("turned", range(1, 9))
def test_photos_are_turned_upright(form, turned):
    exif = Image.Exif()
    exif[ORIENTATION] = turned
    content = saved(form=form, exif=exif)
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("RGB")
    np.testing.assert_array_equal(decode_image(content, "photo", side=None), np.asarray(upright))
    assert decode_image(content, "photo", side=None).shape[0] == (12 if turned < 5 else 8)


def test_an_image_without_orientation_is_as_it_is():
    np.testing.assert_array_equal(decode_image(saved(), "image", side=None), PIXELS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no image", "photo: not a readable image .of no known format"),
        (saved()[:60], "photo: not a readable image"),
        (b"\0\0\0\x18ftypheic" + bytes(40), "photo: HEIC images cannot be read; save it as JPEG"),
        (saved(form="TIFF")[:40] + b"\xff" * 200, "photo: not a readable image"),
    ],
)
def test_what_is_no_image_is_refused(content, message):
    with pytest.raises(DataError, match=message):
        decode_image(content, "photo")


def test_a_file_that_is_gone(tmp_path):
    with pytest.raises(DataError, match=r"gone.png: cannot be read"):
        decode_image(tmp_path / "gone.png", str(tmp_path / "gone.png"))


def test_too_many_pixels():
    with pytest.raises(DataError, match="an image of 8×12 pixels; at most 95 are read"):
        decode_image(saved(), "photo", most=95)


def test_a_draft_is_smaller_and_never_below_its_side():
    large = np.random.default_rng(0).integers(0, 256, size=(400, 640, 3), dtype=np.uint8)
    draft = open_image(saved(large, "JPEG"), "photo", draft=64)
    assert 64 <= min(draft.size) < 400
    assert open_image(saved(large, "JPEG"), "photo").size == (640, 400)
