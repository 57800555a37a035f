"""Image files to pixels: upright, checked, or refused in words."""

import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageOps

from askance.errors import DataError
from askance.images import PixelBudget, decode_image, open_image

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


def test_images_are_unpacked_within_a_budget():
    """Large ones one at a time, small ones together, and none waits forever."""
    budget, lock = PixelBudget(100), threading.Lock()
    now, most, done = 0, 0, 0

    def unpack(pixels):
        nonlocal now, most, done
        with budget.reserve(pixels):
            with lock:
                now += pixels
                most = max(most, now)
            time.sleep(0.001)
            with lock:
                now -= pixels
                done += 1

    sizes = [10, 90, 30, 100, 400, 60] * 20  # 400: larger than the budget, let in alone
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(unpack, sizes))
    assert (done, now, most) == (len(sizes), 0, 400)


def test_a_failed_image_gives_its_room_back(tmp_path):
    Image.new("RGB", (4000, 4000)).save(tmp_path / "a.png", compress_level=1)
    content = (tmp_path / "a.png").read_bytes()
    for _ in range(6):  # of 16 million pixels each
        with pytest.raises(DataError):
            open_image(content[: len(content) // 2], "a.png")
    assert open_image(content, "a.png").size == (4000, 4000)
